cimport cython


cdef class TraceBatch:
    cdef public object rows
    cdef public Py_ssize_t n
    cdef public tuple time
    cdef public Py_ssize_t last


cdef class TraceReader:
    cdef Trace _trace
    cdef public Py_ssize_t known
    cdef public object frontier

    @cython.locals(batch=TraceBatch)
    cpdef list batches(self)
    cpdef advance(self, Py_ssize_t known, object frontier)


cdef class Trace:
    cdef readonly Py_ssize_t depth
    cdef public list batches
    cdef readonly Py_ssize_t n_inserted
    cdef list _readers
    cdef Py_ssize_t _let_be
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
    @cython.locals(reader=TraceReader, batch=TraceBatch)
    cdef _merge(self, Py_ssize_t begin, Py_ssize_t end)
    cdef TraceBatch _advanced(self, TraceBatch batch, object frontier)
