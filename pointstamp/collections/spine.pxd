cimport cython

cdef Py_ssize_t _MOST_READ
cdef Py_ssize_t _FEW_ROWS
cdef Py_ssize_t _MOST_NEW


cdef class SpineBatch:
    cdef readonly object rows
    cdef readonly Py_ssize_t n
    cdef readonly Py_ssize_t n_new
    cdef readonly object time
    cdef public object merge
    cdef public bint is_merging


cdef class SpineRun:
    cdef readonly object rows
    cdef readonly Py_ssize_t n
    cdef public Py_ssize_t n_batches


cdef class SpineReader:
    cdef Spine _spine
    cdef readonly object bound
    cdef readonly object done
    cdef public object first
    cdef readonly bint is_over

    cpdef list through(self, object time)
    cpdef list before(self, object time)
    cpdef finish(self, object time)
    cpdef bint needs_apart(self, object time) except -1
    cpdef acknowledge(self, object bound)
    cpdef close(self)


cdef class Spine:
    cdef readonly object timestamp
    cdef bint _is_natural
    cdef list _batches
    cdef Py_ssize_t _n_acknowledged
    cdef list _readers
    cdef list _runs
    cdef Py_ssize_t _n_in_runs
    cdef readonly bint had_readers
    cdef public bint outlasts
    cdef readonly object newest
    cdef public object log
    cdef public object memory
    cdef public object idle
    cdef Py_ssize_t _fuel
    cdef Py_ssize_t _at_once
    cdef Py_ssize_t _lump
    cdef Py_ssize_t _n_merges
    cdef Py_ssize_t _owed
    cdef bint _is_idle_known

    cpdef bint less_equal(self, object a, object b) except -1
    @cython.locals(n=Py_ssize_t)
    cpdef insert(self, object rows, object time)
    @cython.locals(n=Py_ssize_t, batch=SpineBatch)
    cpdef list read(self, object time, bint through)
    @cython.locals(
        low=Py_ssize_t, high=Py_ssize_t, middle=Py_ssize_t, batch=SpineBatch, is_read=bint
    )
    cdef Py_ssize_t _n_of(self, object time, bint through) except -1
    @cython.locals(
        runs=list, batches=list, found=list, run=SpineRun, older=SpineRun,
        batch=SpineBatch, first=SpineBatch,
    )
    cdef list _read_many(self, Py_ssize_t n)
    @cython.locals(batch=SpineBatch)
    cdef _count(self)
    cdef object _merged(self, object left, object right)
    @cython.locals(batches=list, n_before=Py_ssize_t, batch=SpineBatch)
    cpdef maintain(self)
    @cython.locals(
        batches=list, at=Py_ssize_t, older=SpineBatch, newer=SpineBatch, is_longer=bint
    )
    cdef _tidy(self)
    cdef _begin(self, SpineBatch older, SpineBatch newer)
    @cython.locals(batch=SpineBatch)
    cdef _publish(self, Py_ssize_t at, object rows)
    @cython.locals(batch=SpineBatch, is_complete=bint)
    cdef _spend(self, Py_ssize_t fuel)
    @cython.locals(n=Py_ssize_t, at=Py_ssize_t, batch=SpineBatch, first=Py_ssize_t)
    cpdef bint work(self, Py_ssize_t budget) except -1
    @cython.locals(run=SpineRun)
    cdef _runs_have_fewer(self, Py_ssize_t n_gone, Py_ssize_t n_merged)
    @cython.locals(reader=SpineReader)
    cdef bint _is_needed_apart(self, object time) except -1
    cpdef forget(self, SpineReader reader)
    cdef _keep_what_is_read(self)
