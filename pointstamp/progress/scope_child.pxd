cimport cython

from pointstamp.progress.change_batch cimport ChangeBatch
from pointstamp.progress.operate cimport DirectOperate


@cython.final
cdef class ScopeChild:
    cdef DirectOperate operator
    cdef public object inbox
    cdef readonly int number
    cdef public int first
    cdef public bint is_queued
    cdef readonly bint is_pushed
    cdef readonly bint is_holder
    cdef readonly bint is_complete
    cdef readonly bint is_local
    cdef readonly bint is_interested
    cdef readonly object operate
    cdef readonly object interests
    # With the head of the garbage collector a whole number of lines; see `FewCounts`.
    cdef long long _room[3]

    cpdef ask(self)
    cpdef let_go(self)


@cython.final
cdef class FrontierListener:
    cdef readonly ScopeChild child
    cdef readonly ChangeBatch batch
    cdef readonly bint wakes
    cdef readonly bint if_holder
