cimport cython

cdef Py_ssize_t _WIDTH
cdef long long _BEYOND


@cython.final
cdef class _Block:
    cdef readonly list times
    cdef readonly list numbers
    cdef readonly long long least


@cython.final
cdef class Staircase:
    cdef list _blocks
    cdef readonly Py_ssize_t n_times
    cdef readonly list frontier
    cdef list _none
    cdef list _one_gone
    cdef list _one_came
    cdef readonly list gone
    cdef readonly list came

    @cython.locals(
        outer="long long",
        inner="long long",
        at=Py_ssize_t,
        block=_Block,
        place=Py_ssize_t,
        before="long long",
        after="long long",
        is_there=bint,
    )
    cpdef bint change(self, object time, long long change) except -1
    @cython.locals(outer="long long", inner="long long", block=_Block, place=Py_ssize_t)
    cpdef long long count(self, object time)
    @cython.locals(outer="long long", inner="long long")
    cpdef bint less_equal(self, object time) except -1
    @cython.locals(outer="long long", inner="long long", places=Py_ssize_t)
    cpdef bint less_than(self, object time) except -1
    @cython.locals(outer="long long", inner="long long", places=Py_ssize_t)
    cpdef bint is_minimal(self, object time) except -1
    @cython.locals(
        blocks=list, low=Py_ssize_t, middle=Py_ssize_t, high=Py_ssize_t, block=_Block
    )
    cdef Py_ssize_t _block_of(self, long long outer, long long inner) except -1
    @cython.locals(block=_Block, times=list, numbers=list)
    cdef _insert(self, Py_ssize_t at, Py_ssize_t place, object time, long long number)
    @cython.locals(block=_Block)
    cdef _remove(self, Py_ssize_t at, Py_ssize_t place)
    cdef bint _covers(self, Py_ssize_t places, long long inner) except -1
    @cython.locals(frontier=list, place=Py_ssize_t, end=Py_ssize_t)
    cdef bint _enter(self, object time, long long outer, long long inner) except -1
    @cython.locals(
        frontier=list, place=Py_ssize_t, below="long long", until="long long", freed=list
    )
    cdef bint _exit(self, object time, long long outer, long long inner) except -1
    @cython.locals(blocks=list, at=Py_ssize_t, block=_Block)
    cdef list _uncovered(self, long long outer, long long inner, long long below, long long until)


@cython.locals(
    times=list,
    numbers=list,
    least="long long",
    place=Py_ssize_t,
    number="long long",
    other_inner="long long",
)
cdef long long _look_through(
    _Block block, long long inner, long long below, long long until, list found
)
@cython.locals(low=Py_ssize_t, middle=Py_ssize_t, high=Py_ssize_t)
cdef Py_ssize_t _places_before(list times, long long outer, long long inner) except -1
@cython.locals(low=Py_ssize_t, middle=Py_ssize_t, high=Py_ssize_t)
cdef Py_ssize_t _places_to(list times, long long outer, long long inner) except -1
@cython.locals(own="long long")
cdef bint _is_before(tuple time, long long outer, long long inner) except -1
@cython.locals(own="long long")
cdef bint _is_after(tuple time, long long outer, long long inner) except -1
cdef bint _is(tuple time, long long outer, long long inner) except -1
cdef long long _outer(tuple time)
cdef long long _inner(tuple time)
