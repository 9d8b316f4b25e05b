cimport cython

from pointstamp.communication.mailbox cimport Mailbox, message
from pointstamp.communication.ring cimport RingReader, RingWriter, described
from pointstamp.communication.segment cimport Fence
from pointstamp.containers.registry cimport kind_of
from pointstamp.containers.small_rows cimport RowsReader, pack_columns_head, pack_rows

cdef int _ROWS
cdef int _VALUES
cdef int _DATA
cdef int _BLOCK
cdef int _START
cdef int _PIECE
cdef int _RELAYED
cdef bint _WRITES_VALUES
cdef Py_ssize_t _INLINE_BYTES
cdef Py_ssize_t _VALUES_BYTES
cdef Py_ssize_t _EAGER_BYTES
cdef Py_ssize_t _MAX_RECORDS
cdef Py_ssize_t _MAX_CHANNEL


cdef class SharedLink:
    cdef readonly Py_ssize_t peer
    cdef public object connection
    cdef readonly int fd
    cdef readonly bint waits_for_socket
    cdef public bint is_blocked
    cdef public bint is_broken
    cdef public bint discards_input
    cdef readonly object shutdown
    cdef readonly long long n_unsent
    cdef readonly long long n_sent_bytes
    cdef object _unsent
    cdef object _pieces
    cdef RingWriter _writer
    cdef RingReader _reader
    cdef Mailbox _mailbox
    cdef unsigned long long[::1] _words
    cdef object _memory
    cdef unsigned char[::1] _octets
    cdef RowsReader _rows
    cdef Fence _fence
    cdef object _arena
    cdef Py_ssize_t _parked_word
    cdef Py_ssize_t _woken_word
    cdef object _segment
    cdef Py_ssize_t _peer_rank
    cdef Py_ssize_t _n_sharing
    cdef readonly object _leases
    cdef object _body
    cdef object _body_kind
    cdef object _body_channel
    cdef Py_ssize_t _filled
    cdef object _pass_on

    @cython.locals(n_bytes=Py_ssize_t)
    cpdef send(self, Py_ssize_t channel, object tag, object batch)
    @cython.locals(at="long long", end="long long")
    cdef bint _put_values(self, Py_ssize_t channel, object tag, list batch) except -1
    @cython.locals(
        header=bytes,
        block=bytes,
        n_head="long long",
        n_block="long long",
        at="long long",
        end="long long",
    )
    cdef bint _put_columns(self, Py_ssize_t channel, object tag, object batch) except -1
    cdef _put_small(self, int kind, Py_ssize_t channel, object data)
    cpdef write(self)
    cdef _publish(self)
    cpdef bint can_write(self) except -1
    cpdef bint has_records(self) except -1
    @cython.locals(reader=RingReader)
    cpdef read(self)
    cdef _take(self, int kind, Py_ssize_t channel, bytes data)
    cdef _deliver(self, int kind, Py_ssize_t channel, object body)
    cdef _deliver_relayed(self, Py_ssize_t channel, object body)
    cdef _deliver_values(self, Py_ssize_t channel, Py_ssize_t at, Py_ssize_t n_bytes)
    cdef _deliver_columns(self, Py_ssize_t channel, Py_ssize_t at, Py_ssize_t n_bytes)
