cimport cython

from pointstamp.collections.arrange cimport send_rows
from pointstamp.collections.lattice cimport TimeEncoding
from pointstamp.collections.trace cimport Trace, TraceReader
from pointstamp.containers.updates cimport Updates
from pointstamp.dataflow.capability cimport Capability, InputCapability
from pointstamp.dataflow.handles cimport BuiltInLogic, Input, Output
from pointstamp.dataflow.stash_core cimport StashCore


cdef class Touched:
    cdef readonly list batches
    cdef readonly list keys


cdef class History:
    cdef Py_ssize_t _n_words
    cdef Trace _trace
    cdef TraceReader _reader

    cpdef insert(self, object rows, tuple time)
    cpdef advance(self, list frontier)
    cpdef tuple batches(self)
    cpdef object contents(self)
    cpdef restore(self, object rows)
    cpdef tuple read(self, object keys, tuple time)


cdef class Reduction:
    cdef tuple _n_words
    cdef Py_ssize_t _n_key
    cdef Py_ssize_t _depth
    cdef object _answer
    cdef object _name
    cdef History _input
    cdef History _output

    @cython.locals(batch=Updates, parts=list)
    cpdef tuple at(self, tuple time, Touched touched)
    cdef tuple _revised(self, object keys, tuple now)
    cpdef advance(self, list frontier)


cdef _with_one(object keys)


cdef class _ReduceLogic(BuiltInLogic):
    cdef StashCore _stash
    cdef Reduction _reduction
    cdef TimeEncoding _encoding
    cdef tuple _texts

    @cython.locals(
        input_=Input, output=Output, reduction=Reduction, encoding=TimeEncoding,
        held=Capability, touched=Touched,
    )
    cpdef run(self, list inputs, list outputs)
