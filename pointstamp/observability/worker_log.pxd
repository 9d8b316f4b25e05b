cimport cython
from libc.stdint cimport int64_t

from pointstamp.dataflow.step_observer cimport StepObserver
from pointstamp.observability.buffer cimport Buffer
from pointstamp.observability.clock cimport LogClock

cdef Py_ssize_t _NONE


cdef class WorkerLog(StepObserver):
    cdef LogClock _clock
    cdef Py_ssize_t _index
    cdef Py_ssize_t _peers
    cdef object _folder
    cdef dict _files
    cdef dict _buffers
    cdef Buffer _schedules
    cdef Buffer _messages
    cdef Buffer _progress
    cdef Buffer _parks
    cdef readonly dict _sources
    cdef dict _kept
    cdef list _lost
    cdef Buffer _capabilities
    cdef long long _seen
    cdef bint _is_timed
    cdef object _every_s
    cdef long long _every
    cdef long long _last
    cdef Py_ssize_t _n_operators
    cdef Py_ssize_t _n_channels
    cdef list _scopes
    cdef dict _operators
    cdef list _addresses

    cpdef int64_t now(self) except? -1
    cpdef visited(self, Py_ssize_t scope, long long began)
    @cython.locals(at="long long", peer=Py_ssize_t, number=Py_ssize_t)
    cpdef progress_sent(self, Py_ssize_t scope, Py_ssize_t n_updates)
    cdef Py_ssize_t _number_within(self, Py_ssize_t scope) except? -2
    @cython.locals(number=Py_ssize_t)
    cpdef progress_received(self, Py_ssize_t scope, Py_ssize_t sender, Py_ssize_t n_updates)
    @cython.locals(found=Py_ssize_t, lost=list, number=Py_ssize_t, output=Py_ssize_t)
    cpdef _record_lost(self)
    @cython.locals(at="long long")
    cpdef tick(self)
