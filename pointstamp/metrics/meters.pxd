cimport cython

from pointstamp.containers.registry cimport batch_bytes, kind_of, n_records
from pointstamp.metrics.tick_clock cimport now_ns
from pointstamp.progress.input_frontier cimport InputFrontier

cdef Py_ssize_t _N_BUCKETS
cdef Py_ssize_t _WIDTH
cdef Py_ssize_t _FEW
cdef Py_ssize_t _N_ESTIMATES


@cython.final
cdef class OperatorMeter:
    cdef readonly object name
    cdef readonly object address
    cdef public long long activations
    cdef public long long busy_ticks
    cdef public ProbeMeter probe


@cython.final
cdef class StreamMeter:
    cdef readonly object source
    cdef readonly object target
    cdef readonly object place
    cdef readonly object pact
    cdef readonly long long records
    cdef readonly long long batches
    cdef readonly long long taken_records
    cdef readonly long long taken_batches
    cdef long long _long_bytes
    cdef double _short_bytes
    cdef double _record_bytes
    cdef Py_ssize_t _n_unasked

    @cython.locals(is_rows=bint, n=Py_ssize_t)
    cpdef sent(self, object batch)
    cpdef taken(self, Py_ssize_t n_records)


@cython.final
cdef class InputMeter:
    cdef readonly object name
    cdef readonly object address
    cdef readonly EpochMeter epochs
    cdef readonly object time
    cdef readonly bint is_closed

    cpdef move(self, object time)
    cpdef close(self)


@cython.final
cdef class LeftEpochs:
    cdef readonly long long first
    cdef readonly long long n
    cdef long long _n_places
    cdef long long[::1] _numbers

    @cython.locals(at=Py_ssize_t)
    cpdef add(
        self,
        long long until,
        long long left_ns,
        long long epoch,
        long long began_ns,
        long long records,
        bint is_end,
    )
    cpdef bint is_full(self) noexcept
    cpdef make_room(self, long long wanted)
    cpdef long long until(self, long long number) noexcept
    cpdef long long left_ns(self, long long number) noexcept
    @cython.locals(at=Py_ssize_t)
    cpdef epoch(self, long long number)
    cdef Py_ssize_t _place(self, long long number) noexcept


@cython.final
cdef class ProbeMeter:
    cdef readonly object on_epoch
    cdef readonly object name
    cdef readonly object address
    cdef InputFrontier _counts
    cdef bint _is_int
    cdef LeftEpochs _left
    cdef readonly long long next
    cdef long long[::1] _bounds
    cdef readonly long long[::1] buckets
    cdef readonly long long sum_ns
    cdef readonly long long count

    @cython.locals(left=LeftEpochs, latency_ns="long long", bucket=Py_ssize_t)
    cpdef look(self, long long now=*)
    cdef bint _is_complete(self, long long until) except -1


@cython.final
cdef class EpochMeter:
    cdef readonly list inputs
    cdef readonly list probes
    cdef readonly LeftEpochs left
    cdef bint _has_begun
    cdef long long _least
    cdef readonly long long until
    cdef readonly bint is_closed
    cdef readonly dict sent

    cpdef note_sent(self, object epoch, Py_ssize_t n_records)
    cpdef input_moved(self)
    @cython.locals(
        is_open=bint, least="long long", last="long long", time="long long", each=InputMeter
    )
    cdef _take_move(self)
    @cython.locals(now="long long", began="long long", n_records="long long")
    cdef _leave(self, long long epoch, long long until, bint is_end)


@cython.final
cdef class DataflowMeter:
    cdef readonly object number
    cdef readonly object name
    cdef public long long busy_ticks
    cdef public object throttled
    cdef readonly list operators
    cdef readonly list streams
    cdef readonly EpochMeter epochs
