cimport cython

from pointstamp.containers.registry cimport n_records
from pointstamp.dataflow.capability cimport Capability
from pointstamp.metrics.metering cimport MeteredCapabilities, MeteredOperator, MeteredQueue
from pointstamp.observability.buffer cimport Buffer
from pointstamp.observability.clock cimport LogClock
from pointstamp.progress.change_batch cimport ChangeBatch
from pointstamp.progress.operate cimport CountObserver, DirectOperate, ProgressReport


cdef int _PAIRS


cdef class LoggedOperator(MeteredOperator):
    cdef readonly Py_ssize_t number
    cdef LogClock _clock
    cdef Buffer _schedules
    cdef Buffer _frontiers

    @cython.locals(port=Py_ssize_t, batch=ChangeBatch)
    cpdef push_external_progress(self, object changes)
    @cython.final
    @cython.locals(
        at="long long",
        number=Py_ssize_t,
        n=Py_ssize_t,
        place=Py_ssize_t,
        first=Py_ssize_t,
        outer="long long",
        inner="long long",
        change="long long",
    )
    cdef _record(self, Py_ssize_t port, ChangeBatch batch)
    @cython.locals(began="long long")
    cpdef ProgressReport pull_internal_progress(self)


cdef class LoggedScope(DirectOperate):
    cdef Py_ssize_t _number
    cdef LogClock _clock
    cdef Buffer _schedules
    cdef DirectOperate _scope

    cpdef push_external_progress(self, object changes)
    @cython.locals(began="long long")
    cpdef ProgressReport pull_internal_progress(self)
    cpdef bint holds(self) except -1
    cpdef bint is_complete(self) except -1
    cpdef abandon(self)


cdef class LoggedCapabilities(MeteredCapabilities):
    cdef Py_ssize_t _number
    cdef LogClock _clock
    cdef Buffer _buffer
    cdef list _lost

    cpdef Capability add(self, object time)
    cpdef remove(self, object time)
    cpdef collected(self, object time)
    @cython.locals(at="long long")
    cpdef move(self, object time, object new_time)


cdef class LoggedCounts(CountObserver):
    cdef Py_ssize_t _scope
    cdef Py_ssize_t _within
    cdef object _operators
    cdef LogClock _clock
    cdef Buffer _buffer
    cdef long long[::1] _places

    cpdef lay_out(self, object ports)
    cpdef changed(self, Py_ssize_t location, object time, long long change)
    @cython.locals(at="long long", number="long long", port="long long", is_input="long long")
    cpdef changed_number(
        self,
        Py_ssize_t location,
        long long outer,
        long long inner,
        bint is_pair,
        long long change,
    )


cdef class LoggedChannel:
    cdef object _channel
    cdef Py_ssize_t _index
    cdef LogClock _clock
    cdef Buffer _messages
    cdef readonly object id
    cdef public Py_ssize_t number


cdef class LoggedQueue(MeteredQueue):
    cdef Py_ssize_t _index
    cdef LogClock _clock
    cdef Buffer _messages
    cdef readonly Py_ssize_t number

    cpdef push(self, object time, object batch)
    @cython.locals(index=Py_ssize_t)
    cpdef tuple take(self)
