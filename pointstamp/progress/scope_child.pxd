cimport cython

from pointstamp.progress.change_batch cimport ChangeBatch
from pointstamp.progress.operate cimport DirectOperate


@cython.final
cdef class ScopeChild:
    cdef readonly object operate
    cdef DirectOperate operator
    cdef public object inbox
    cdef readonly Py_ssize_t number
    cdef public Py_ssize_t first
    cdef public bint is_queued
    cdef readonly bint is_local
    cdef readonly bint is_pushed
    cdef readonly bint is_interested
    cdef readonly bint is_holder
    cdef readonly bint is_complete
    cdef readonly object interests

    cpdef ask(self)
    cpdef let_go(self)


@cython.final
cdef class FrontierListener:
    cdef readonly ScopeChild child
    cdef readonly ChangeBatch batch
    cdef readonly bint wakes
    cdef readonly bint if_holder
