cimport cython

from pointstamp.communication.mailbox cimport Mailbox, message
from pointstamp.communication.shared_link cimport SharedLink
from pointstamp.communication.spin cimport Spin, now_s

cdef int _N_LOOKS


cdef class MeshCommunicator:
    cdef dict __dict__
    cdef object __weakref__
    cdef readonly Py_ssize_t index
    cdef readonly Py_ssize_t peers
    cdef readonly list machines
    cdef Mailbox _mailbox
    cdef readonly object _segment
    cdef readonly dict _ranks
    cdef readonly object _arena
    cdef readonly dict _links
    cdef readonly list _shared
    cdef readonly dict _by_fd
    cdef bint _has_streams
    cdef set _to_flush
    cdef readonly object _routes
    cdef readonly object _relay
    cdef Py_ssize_t _n_passed_on
    cdef set _to_write
    cdef object _failure
    cdef bint _is_closed
    cdef public bint is_urgent
    cdef bint _was_polled
    cdef public double _look_at
    cdef readonly Spin _spin
    cdef public bint _is_woken
    cdef object _wake_reader
    cdef object _wake_writer
    cdef object _poll

    cpdef _carry(self, Py_ssize_t channel, Py_ssize_t peer, object tag, object batch)
    cdef _put_into_ring(self, SharedLink link, Py_ssize_t channel, object tag, object batch)
    cpdef list receive(self)
    cpdef flush(self)
    cpdef park(self, object timeout_s=*)
    @cython.locals(began=double, until=double)
    cdef _wait(self, object timeout_s)
    cdef bint _is_roused(self) except -1
    @cython.locals(_i=int)
    cdef _look_until(self, double until)
    @cython.locals(link=SharedLink)
    cdef _look(self)
    @cython.locals(link=SharedLink)
    cdef _sleep(self, object wait_ms)
    cdef _write(self, object link)
    cdef _write_ring(self, SharedLink link)
    cdef _read(self, SharedLink link)
