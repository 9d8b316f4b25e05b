cimport cython
from cpython.long cimport PyLong_AsLongLongAndOverflow

cdef Py_ssize_t _FEW
cdef Py_ssize_t _FEW_NUMBERS
cdef long long _BEYOND
cdef int _NOTHING
cdef int _INTEGERS
cdef int _PAIRS
cdef int _OBJECTS
cdef bint _IS_COMPILED


cdef inline long long _number_in_c(object item) noexcept:
    cdef int overflow = 0
    cdef long long number = PyLong_AsLongLongAndOverflow(item, &overflow)
    return number if overflow == 0 and -(1LL << 61) < number else 1LL << 61


cpdef long long as_number(object item) noexcept


cdef object _joined(long long outer, long long inner, bint is_pair)


@cython.final
cdef class ChangeBatch:
    # Up to the first entry it is one line of the cache; see `FewCounts`.
    cdef Py_ssize_t _n
    cdef readonly int kind
    cdef long long entries[12]
    cdef dict _many
    cdef readonly list items
    cdef readonly list changes
    # With the head of the garbage collector a whole number of lines; see `FewCounts`.
    cdef long long _room[2]

    @cython.locals(outer="long long", inner="long long")
    cpdef update(self, object item, long long change)
    @cython.locals(kind=int, n=Py_ssize_t, place=Py_ssize_t)
    cdef int update_number(
        self, long long outer, long long inner, bint is_pair, long long change
    ) except -1
    cpdef Py_ssize_t gather(self) except -1
    cpdef Py_ssize_t n_numbers(self) except -2
    cpdef clear(self)
    @cython.locals(changes=list)
    cpdef list drain(self)
    cpdef bint is_empty(self) except -1
    @cython.locals(place=Py_ssize_t)
    cdef list _pairs(self)
    @cython.locals(outer="long long", inner="long long")
    cdef object _item(self, Py_ssize_t place)
    @cython.locals(to=Py_ssize_t)
    cdef void _close_up(self, Py_ssize_t place) noexcept
    @cython.locals(n=Py_ssize_t, place=Py_ssize_t)
    cdef _make_objects(self)
    @cython.locals(items=list, n=Py_ssize_t, place=Py_ssize_t)
    cdef _update_object(self, object item, long long change)
    @cython.locals(total="long long")
    cdef int _add(self, Py_ssize_t place, long long change) except -1
    cdef _make_many(self)
    @cython.locals(total="long long")
    cdef _update_many(self, object item, long long change)
