cimport cython

from pointstamp.collections.arrange cimport send_rows
from pointstamp.collections.lattice cimport TimeEncoding, join_of
from pointstamp.collections.trace cimport TraceBatch, TraceReader
from pointstamp.containers.updates cimport Updates
from pointstamp.dataflow.capability cimport Capability
from pointstamp.dataflow.handles cimport BuiltInLogic, Input, Output


cdef class Matcher:
    cdef Py_ssize_t _n_key
    cdef Py_ssize_t _depth
    cdef tuple _plain
    cdef tuple _timed

    @cython.locals(rows=list, times=list)
    cpdef list pairs(self, object changes, tuple time, TraceReader kept)
    @cython.locals(batch=TraceBatch, by_time=dict, found=list)
    cdef list _pairs_of_many(self, object changes, tuple time, list kept)
    cdef _matched(self, object changes, object batch, tuple recipes)


cdef class _JoinTracesLogic(BuiltInLogic):
    cdef tuple _matchers
    cdef tuple _readers
    cdef TimeEncoding _encoding
    cdef tuple _texts
    cdef object _name

    @cython.locals(
        encoding=TimeEncoding, input_=Input, reader=TraceReader, other=TraceReader, time=tuple
    )
    cpdef run(self, list inputs, list outputs)
    @cython.locals(matcher=Matcher)
    cdef list _pairs(self, Py_ssize_t side, object rows, tuple time, TraceReader kept)
    @cython.locals(output=Output, later=Capability)
    cdef _send(self, list found, object held, list outputs)
