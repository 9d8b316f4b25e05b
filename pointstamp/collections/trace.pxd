cimport cython


cdef class TraceBatch:
    cdef public object rows
    cdef public Py_ssize_t n
    cdef public tuple time
    cdef public Py_ssize_t last


cdef class TraceReader:
    cdef Trace _trace
    cdef public Py_ssize_t known
    cdef public list frontier

    @cython.locals(batch=TraceBatch)
    cpdef list batches(self)
    @cython.locals(batch=TraceBatch, rows=list, times=list)
    cpdef tuple read(self)
    cpdef advance(self, Py_ssize_t known, list frontier)


cdef class Trace:
    cdef readonly Py_ssize_t depth
    cdef public list batches
    cdef readonly Py_ssize_t n_inserted
    cdef list _readers
    cdef Py_ssize_t _let_be
    cdef Py_ssize_t _n_known
    cdef Py_ssize_t _n_looked_at
    cdef object _log
    cdef object _name

    cpdef TraceReader reader(self)
    cpdef Py_ssize_t insert(self, object rows, tuple time) except -1
    cpdef object contents(self)
    cpdef Py_ssize_t restore(self, object rows) except -1
    @cython.locals(
        batches=list, known=Py_ssize_t, n=Py_ssize_t, n_small=Py_ssize_t, begin=Py_ssize_t,
        total=Py_ssize_t, reader=TraceReader,
    )
    cpdef maintain(self)
    cpdef list as_few(self, Py_ssize_t most)
    cpdef object timed(self, TraceBatch batch)
    @cython.locals(reader=TraceReader)
    cdef bint _is_read(self) except -1
    @cython.locals(batch=TraceBatch, part=TraceBatch, batches=list, parts=list, small=list)
    cdef _merge(self, Py_ssize_t begin, Py_ssize_t end)
    cdef TraceBatch _advanced(self, TraceBatch batch, list frontier)
