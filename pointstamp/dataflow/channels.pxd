cimport cython

from pointstamp.communication.mailbox cimport ChannelEnd, end_of
from pointstamp.dataflow.backpressure cimport InFlight
from pointstamp.containers.registry cimport kind_of, n_records, batch_schema
from pointstamp.progress.change_batch cimport ChangeBatch
from pointstamp.progress.activation cimport Activation

cdef Py_ssize_t _N_WAITING
cdef Py_ssize_t _BATCH_COST
cdef Py_ssize_t _LARGE_RECORDS


cdef object _another(object batch)

cdef Py_ssize_t _length(object batch) except -1

cdef list _merged(list batches)


cdef class Pusher:
    cpdef push(self, object time, object batch)
    cpdef measure(self, object meter)


@cython.final
cdef class Tee:
    cdef readonly object name
    cdef public ChangeBatch produced
    cdef readonly list pushers
    cdef readonly long long n_sent
    cdef object _fail
    cdef object _kind
    cdef object _schema

    @cython.locals(n=Py_ssize_t, n_left=Py_ssize_t, pusher=Pusher)
    cpdef push(self, object time, object batch)


cdef class Queue(Pusher):
    # What is looked at for each batch comes first, so that it is in few lines of the cache.
    cdef readonly tuple _next
    cdef readonly object _local
    cdef bint _is_in_memory
    cdef bint _is_above_watermark
    cdef Activation _activation
    cdef object _aligner
    cdef Py_ssize_t _left
    cdef Py_ssize_t _budget
    cdef readonly ChangeBatch consumed
    cdef readonly long long n_taken
    cdef public object last_time
    cdef readonly object _channel
    cdef ChannelEnd _end
    cdef readonly list _later
    cdef object _backpressure
    cdef InFlight _in_flight
    cdef public object reader
    # With the head of the garbage collector a whole number of lines; see `FewCounts`.
    cdef long long _room[3]

    cpdef push(self, object time, object batch)
    cpdef tuple pull(self)
    cdef tuple _pull_admitted(self)
    @cython.locals(n_records=Py_ssize_t)
    cdef _count(self, tuple item, Py_ssize_t sign)
    @cython.locals(n_records=Py_ssize_t, item=tuple)
    cpdef tuple take(self)
    cdef _pull_channel(self)
    cpdef discount(self)
    cpdef _keep_next(self)
    cdef _need_local(self)
    @cython.locals(waiting=list, least=dict, batches_at=dict, batches=list)
    cpdef bint put_off_later_rounds(self) except -1
    cpdef abandon(self)
    cpdef bint renew(self) except -1


cdef class KeyCheckingPusher(Pusher):
    cdef Queue _queue
    cdef object _key
    cdef list _columns
    cdef object _checked

    cpdef push(self, object time, object batch)


cdef class RemotePusher(Pusher):
    cdef readonly Queue _queue
    cdef readonly object _channel
    cdef ChannelEnd _end
    cdef readonly Py_ssize_t _index
    cdef readonly Py_ssize_t _peers
    cdef InFlight _in_flight

    cpdef measure(self, object meter)
    cdef void hand(self, Py_ssize_t peer, object time, object batch, Py_ssize_t n_records) except *


cdef class ExchangePusher(RemotePusher):
    cdef readonly object _by

    @cython.locals(peer=Py_ssize_t, n=Py_ssize_t)
    cpdef push(self, object time, object batch)
    cpdef list split(self, object kind, object batch)


cdef class RoutePusher(ExchangePusher):
    cpdef list split(self, object kind, object batch)


cdef class BroadcastPusher(RemotePusher):
    @cython.locals(peer=Py_ssize_t, n_records=Py_ssize_t)
    cpdef push(self, object time, object batch)


cdef class DistributePusher(RemotePusher):
    cdef readonly object _route

    @cython.locals(n_records=Py_ssize_t)
    cpdef push(self, object time, object batch)


cdef class Ingress(Pusher):
    cdef Tee _inner
    cdef object _refinement
    cdef ChangeBatch _entered
    cdef Activation _activation

    cpdef push(self, object time, object batch)


cdef class Egress(Pusher):
    cdef Tee _outer
    cdef object _refinement

    cpdef push(self, object time, object batch)
