cimport cython

from pointstamp.collections.batch_merges cimport BatchMerge


cdef class TraceBatch:
    cdef public object rows
    cdef public Py_ssize_t n
    cdef public tuple time
    cdef public Py_ssize_t last
    cdef public Py_ssize_t n_new
    cdef public TraceMerge merge
    cdef public bint is_merging


cdef class TraceMerge:
    cdef TraceBatch _left
    cdef TraceBatch _right
    cdef list _frontier
    cdef object _into
    cdef tuple _read
    cdef Py_ssize_t _n
    cdef Py_ssize_t _n_plain
    cdef Py_ssize_t _n_words
    cdef tuple _seen
    cdef object _plain
    cdef BatchMerge _of_one_time
    cdef readonly bint is_complete
    cdef readonly Py_ssize_t n_fuel
    cdef readonly tuple time

    @cython.locals(most=Py_ssize_t, end=Py_ssize_t)
    cpdef bint advance(self, Py_ssize_t fuel) except -1
    @cython.locals(
        i=Py_ssize_t, j=Py_ssize_t, n=Py_ssize_t, left=TraceBatch, right=TraceBatch, ends=tuple
    )
    cdef _merge_some(self, Py_ssize_t most)
    cdef object _advanced(self, TraceBatch batch, object rows)


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
    cdef Py_ssize_t _small
    cdef Py_ssize_t _n_known
    cdef Py_ssize_t _n_looked_at
    cdef Py_ssize_t _fuel
    cdef Py_ssize_t _at_once
    cdef Py_ssize_t _lump
    cdef Py_ssize_t _n_merges
    cdef Py_ssize_t _owed
    cdef public object idle
    cdef bint _is_idle_known
    cdef object _log
    cdef object _name

    cpdef TraceReader reader(self)
    @cython.locals(n=Py_ssize_t)
    cpdef Py_ssize_t insert(self, object rows, tuple time) except -1
    cpdef object contents(self)
    cpdef Py_ssize_t restore(self, object rows) except -1
    @cython.locals(
        batches=list, n=Py_ssize_t, n_large=Py_ssize_t, begin=Py_ssize_t, total=Py_ssize_t,
        n_all=Py_ssize_t, known=Py_ssize_t, is_fitting=bint, older=TraceBatch, newest=TraceBatch,
    )
    cpdef maintain(self)
    @cython.locals(known=Py_ssize_t, reader=TraceReader)
    cdef Py_ssize_t _known(self) except -1
    @cython.locals(batches=list, n=Py_ssize_t, newest=TraceBatch)
    cdef Py_ssize_t _n_mergeable(self, Py_ssize_t known) except -1
    @cython.locals(older=TraceBatch, newer=TraceBatch)
    cdef _begin(self, Py_ssize_t at)
    @cython.locals(older=TraceBatch, merged=TraceMerge, found=TraceBatch)
    cdef _publish(self, Py_ssize_t at)
    @cython.locals(at=Py_ssize_t, batch=TraceBatch)
    cdef _spend(self, Py_ssize_t fuel)
    @cython.locals(n=Py_ssize_t, at=Py_ssize_t, batch=TraceBatch, first=Py_ssize_t)
    cpdef bint work(self, Py_ssize_t budget) except -1
    @cython.locals(begin=Py_ssize_t, batch=TraceBatch)
    cpdef list as_few(self, Py_ssize_t most)
    @cython.locals(batch=TraceBatch)
    cdef _give_up_merges(self, Py_ssize_t begin)
    cpdef object timed(self, TraceBatch batch)
    @cython.locals(reader=TraceReader)
    cdef bint _is_read(self) except -1
    @cython.locals(
        batch=TraceBatch, part=TraceBatch, batches=list, frontier=list, parts=list, small=list,
        times=list,
    )
    cdef _merge(self, Py_ssize_t begin, Py_ssize_t end)
    cdef TraceBatch _advanced(self, TraceBatch batch, list frontier)
