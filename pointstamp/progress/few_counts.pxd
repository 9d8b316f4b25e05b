cimport cython

from pointstamp.progress.antichain cimport MutableAntichain

cdef Py_ssize_t _FEW
cdef Py_ssize_t _FEWER
cdef long long _BEYOND


@cython.final
cdef class Others:
    cdef public Py_ssize_t n
    cdef long long outers[6]
    cdef long long inners[6]


# What a change looks at where there is one time comes first, and is one line of the cache (64
# bytes) with the head of the object. Python's allocator has objects whose sizes are multiples of 64
# begin 16 bytes before a line, and these 16 are the garbage collector's.
@cython.final
cdef class FewCounts:
    cdef Py_ssize_t _n
    cdef readonly Others others
    cdef long long _entries[18]
    cdef readonly MutableAntichain many
    cdef object _timestamp
    cdef bint _pairs
    # With the head of the garbage collector a whole number of lines.
    cdef long long _room[4]

    @cython.locals(before="long long", after="long long")
    cpdef int change(self, long long outer, long long inner, long long change) except -2
    @cython.locals(
        n=Py_ssize_t,
        place=Py_ssize_t,
        end=Py_ssize_t,
        other=Py_ssize_t,
        n_others=Py_ssize_t,
        before="long long",
        after="long long",
        below="long long",
    )
    cdef int _change_among(self, long long outer, long long inner, long long change) except -2
    @cython.locals(place=Py_ssize_t)
    cpdef long long count(self, long long outer, long long inner)
    @cython.locals(place=Py_ssize_t)
    cpdef bint less_equal(self, long long outer, long long inner) except -1
    @cython.locals(place=Py_ssize_t)
    cpdef bint less_than(self, long long outer, long long inner) except -1
    @cython.locals(place=Py_ssize_t, below="long long", found=list)
    cpdef list elements(self)
    cpdef Py_ssize_t n_times(self) except -1
    cdef MutableAntichain _counted(self)
    cdef object _time(self, long long outer, long long inner)
    @cython.locals(at=Py_ssize_t, to=Py_ssize_t)
    cdef void _insert(self, Py_ssize_t place, long long outer, long long inner, long long number) noexcept
    @cython.locals(to=Py_ssize_t)
    cdef void _remove(self, Py_ssize_t place) noexcept
    @cython.locals(many=MutableAntichain)
    cdef int _change_many(self, long long outer, long long inner, long long change) except -2
    cdef _make_many(self)
    @cython.locals(outer="long long", inner="long long")
    cdef _make_few(self)
