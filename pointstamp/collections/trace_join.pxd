cimport cython

from pointstamp.collections.arrange cimport send_rows
from pointstamp.collections.lattice cimport TimeEncoding, join_of
from pointstamp.collections.trace cimport TraceReader
from pointstamp.containers.updates cimport Updates
from pointstamp.dataflow.capability cimport Capability, InputCapability
from pointstamp.dataflow.handles cimport BuiltInLogic, Input, Output


cdef class Matcher:
    cdef readonly Py_ssize_t n_key
    cdef readonly Py_ssize_t depth
    cdef readonly tuple plain
    cdef readonly tuple timed

    @cython.locals(rows=list, times=list)
    cpdef tuple few(self, object changes, tuple time, TraceReader kept, Py_ssize_t most)
    cpdef BatchPairs many(self, object changes, tuple time, TraceReader kept)


cdef class BatchPairs:
    cdef Matcher _matcher
    cdef object _changes
    cdef tuple _time
    cdef readonly list kept
    cdef list _times
    cdef readonly bint is_over
    cdef Py_ssize_t _at
    cdef Py_ssize_t _begin
    cdef object _after

    @cython.locals(
        matcher=Matcher, time=tuple, own=tuple, by_time=dict, found=list, n=Py_ssize_t
    )
    cpdef tuple some(self, Py_ssize_t most)
    @cython.locals(found=tuple)
    cdef _matched(self, tuple recipes, Py_ssize_t most)


cdef class _JoinTracesLogic(BuiltInLogic):
    cdef tuple _matchers
    cdef tuple _readers
    cdef TimeEncoding _encoding
    cdef object _activate
    cdef tuple _texts
    cdef object _name
    cdef Capability _held
    cdef Py_ssize_t _side
    cdef list _messages
    cdef BatchPairs _pairs

    @cython.locals(
        encoding=TimeEncoding, input_=Input, output=Output, reader=TraceReader, fuel=Py_ssize_t,
        received=tuple,
    )
    cpdef run(self, list inputs, list outputs)
    cpdef list waiting(self)
    @cython.locals(
        matcher=Matcher, other=TraceReader, reader=TraceReader, time=tuple, n_made=Py_ssize_t,
        n=Py_ssize_t, most=Py_ssize_t, at=Py_ssize_t, found=list,
    )
    cdef Py_ssize_t _take(
        self, Py_ssize_t side, InputCapability held, list messages, Output output, Py_ssize_t fuel
    ) except -1
    @cython.locals(
        matcher=Matcher, other=TraceReader, reader=TraceReader, held=Capability, time=tuple,
        n_made=Py_ssize_t, n=Py_ssize_t, side=Py_ssize_t, pairs=BatchPairs,
    )
    cdef Py_ssize_t _go_on(self, Output output, Py_ssize_t fuel) except -1
    cdef _end(self, Capability held)
    @cython.locals(later=Capability)
    cdef _send(self, list found, object held, Output output, bint is_alone=*)
