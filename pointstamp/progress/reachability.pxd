cimport cython

from pointstamp.progress.antichain cimport MutableAntichain
from pointstamp.progress.change_batch cimport ChangeBatch
from pointstamp.progress.few_counts cimport FewCounts, Others
from pointstamp.progress.step cimport Step

cdef long long _BEYOND


@cython.final
cdef class Tracker:
    # What each propagation looks at comes first, so that it is in few lines of the cache.
    cdef readonly bint has_numbers
    cdef readonly bint has_pairs
    cdef bint _are_laid_out
    cdef bint _natural
    cdef Py_ssize_t _n_noted
    cdef Py_ssize_t _work_first
    cdef Py_ssize_t _work_end
    cdef Py_ssize_t n_moved
    cdef Py_ssize_t _n_inside
    cdef readonly tuple _pointstamps
    cdef readonly tuple _implications
    cdef bytearray is_inside
    cdef bytearray is_delivered
    cdef tuple _to_outputs
    cdef readonly tuple output_changes
    cdef Others _others
    cdef long long[::1] _noted
    cdef long long[::1] _work
    cdef long long[::1] moved
    cdef long long[::1] _first_shifts
    cdef long long[::1] _shifts
    cdef list _noted_times
    cdef list _work_times
    cdef list _work_keys
    cdef list moved_times
    cdef list steps
    cdef object _key
    cdef object _timestamp
    cdef long long _outer
    cdef long long _inner
    cdef readonly object topology

    @cython.locals(note=Py_ssize_t)
    cpdef update(self, Py_ssize_t location, object time, long long change)
    @cython.locals(at=Py_ssize_t)
    cdef int update_number(
        self, Py_ssize_t location, long long outer, long long inner, long long change
    ) except -1
    @cython.locals(note=Py_ssize_t)
    cdef Py_ssize_t _next_note(self) except -1
    @cython.locals(
        times=list, note=Py_ssize_t, n_noted=Py_ssize_t, change="long long"
    )
    cpdef propagate(self)
    cpdef forget_frontier_changes(self)
    @cython.locals(implied=MutableAntichain, own="long long")
    cpdef bint is_covered(self, Py_ssize_t location, object time) except -1
    @cython.locals(few=FewCounts, count="long long", is_minimal=bint)
    cdef bint _is_number_covered(
        self, Py_ssize_t location, long long outer, long long inner
    ) except -1
    @cython.locals(implied=MutableAntichain, few=FewCounts)
    cpdef bint is_expected(self, Py_ssize_t location, object time) except -1
    cpdef bint is_idle(self) except -1
    @cython.locals(counts=MutableAntichain, is_inside=bint, held=Py_ssize_t, has_moved=bint)
    cdef _count(self, Py_ssize_t location, object time, long long change)
    @cython.locals(changes=ChangeBatch, step=Step)
    cdef _imply_at_outputs(self, Py_ssize_t location, MutableAntichain counts)
    cdef _push_time(self, Py_ssize_t location, object time, long long change)
    @cython.locals(
        keys=list,
        low=Py_ssize_t,
        middle=Py_ssize_t,
        high=Py_ssize_t,
        place=Py_ssize_t,
        is_before=bint,
    )
    cdef _push(self, Py_ssize_t location, object time, long long change)
    @cython.locals(first=Py_ssize_t, end=Py_ssize_t, to=Py_ssize_t)
    cdef Py_ssize_t _make_room(self, Py_ssize_t at) except -1
    @cython.locals(number=Py_ssize_t)
    cdef int _move(self, Py_ssize_t at, Py_ssize_t to) except -1
    cdef _grow_work(self)
    @cython.locals(
        times=list,
        first=Py_ssize_t,
        change="long long",
        location=Py_ssize_t,
        implied=MutableAntichain,
    )
    cdef _spread(self)
    cdef list _steps_of(self, Py_ssize_t location)
    @cython.locals(step=Step, moved=Py_ssize_t, steps=list)
    cdef _pass_on(self, Py_ssize_t location, object time, long long change)
    @cython.locals(moved=Py_ssize_t)
    cdef Py_ssize_t _next_moved(self) except -1
    cdef object _time(self, long long outer, long long inner)
    cdef bint _reads(self, object time) except -1
    @cython.locals(
        at=Py_ssize_t,
        location=Py_ssize_t,
        outer="long long",
        inner="long long",
        counts=FewCounts,
        is_inside=bint,
        held=Py_ssize_t,
        outputs=list,
        sign=int,
        other=Py_ssize_t,
    )
    cdef _count_number(self, Py_ssize_t note)
    @cython.locals(
        first=Py_ssize_t,
        change="long long",
        location=Py_ssize_t,
        outer="long long",
        inner="long long",
        implied=FewCounts,
        sign=int,
        other=Py_ssize_t,
    )
    cdef int _spread_numbers(self) except -1
    cdef tuple _other(self, FewCounts counts, int sign, Py_ssize_t other)
    @cython.locals(step=Step, changes=ChangeBatch)
    cdef int _imply_number(
        self, list steps, long long outer, long long inner, int change
    ) except -1
    @cython.locals(
        way=Py_ssize_t,
        at=Py_ssize_t,
        number=Py_ssize_t,
        to_outer="long long",
        to_inner="long long",
    )
    cdef int _pass_number_on(
        self, Py_ssize_t location, long long outer, long long inner, int change
    ) except -1
    @cython.locals(step=Step)
    cdef _pass_along(self, Py_ssize_t location, Py_ssize_t number, object time, long long change)
    @cython.locals(
        low=Py_ssize_t,
        middle=Py_ssize_t,
        high=Py_ssize_t,
        at=Py_ssize_t,
        other="long long",
        is_before=bint,
    )
    cdef Py_ssize_t _push_number(
        self, Py_ssize_t location, long long outer, long long inner, long long change
    ) except -1
    cdef _make_objects(self)
    cdef tuple _counted(self, tuple places)
    @cython.locals(at=Py_ssize_t)
    cdef list _listed(self, object entries, list times, Py_ssize_t n)
    @cython.locals(at=Py_ssize_t)
    cdef list _times_in(self, object entries)
    cdef list _no_times(self)
