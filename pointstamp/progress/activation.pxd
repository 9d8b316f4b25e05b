from pointstamp.progress.operate cimport DirectOperate


cdef class ActivatedScope(DirectOperate):
    cpdef activate(self, Py_ssize_t child)


cdef class Activation:
    cdef Py_ssize_t _child
    cdef public ActivatedScope subgraph
    cdef public bint is_at_work
    cdef public bint has_collected

    cpdef ask(self)


cdef class CallActivation(Activation):
    cdef object _call

    cpdef ask(self)
