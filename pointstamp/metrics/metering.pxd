cimport cython

from pointstamp.dataflow.capability cimport Capability, CapabilityCounts
from pointstamp.dataflow.channels cimport Queue
from pointstamp.dataflow.operator cimport Operator
from pointstamp.metrics.meters cimport InputMeter, OperatorMeter, StreamMeter
from pointstamp.metrics.tick_clock cimport ticks
from pointstamp.progress.operate cimport ProgressReport


cdef class MeteredOperator(Operator):
    cdef public OperatorMeter meter

    @cython.locals(meter=OperatorMeter, began="long long")
    cpdef ProgressReport pull_internal_progress(self)


cdef class MeteredCapabilities(CapabilityCounts):
    cdef public InputMeter meter

    cpdef Capability add(self, object time)
    cpdef move(self, object time, object new_time)
    cpdef remove(self, object time)


cdef class MeteredQueue(Queue):
    cdef public StreamMeter meter

    cpdef push(self, object time, object batch)
    @cython.locals(before="long long", item=tuple)
    cpdef tuple take(self)


@cython.final
cdef class MeteredChannel:
    cdef object _channel
    cdef public StreamMeter meter
    cdef readonly object id
    cdef readonly object pull
    cdef readonly object waiting
    cdef readonly object hold_in
    cdef readonly object close
