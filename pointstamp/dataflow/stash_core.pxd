cimport cython

from pointstamp.dataflow.capability cimport Capability, InputCapability
from pointstamp.dataflow.handles cimport Input
from pointstamp.dataflow.notificator cimport Notificator


cdef class StashCore:
    cdef Notificator _notificator
    cdef bint _by_input
    cdef object _make
    cdef object _outputs
    cdef dict _values
    cdef dict _more
    cdef readonly object value

    cpdef at(self, object held, object time=*)
    cpdef add(self, object held, object batch, object time=*)
    @cython.locals(received=tuple)
    cpdef take_from(self, Input input_, Py_ssize_t number=*)
    cpdef list times(self)
    cpdef Capability next_complete(self)
    @cython.locals(received=InputCapability, kept=Capability)
    cdef _begin(self, object held, object time)
