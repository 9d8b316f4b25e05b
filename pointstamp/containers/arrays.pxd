cimport cython

from pointstamp.containers.array_fields cimport n_values, of_integers, read_only
from pointstamp.containers.layouts cimport ArraysLayout, layout_of

cdef object _ndarray
cdef object _from_buffer


cdef class Arrays:
    cdef dict _given
    cdef dict _opened
    cdef bytes _block
    cdef ArraysLayout _layout
    cdef Py_ssize_t _n_records
    cdef bint _is_whole

    cpdef ArraysLayout layout(self)
    cpdef source(self)
    cdef _open(self, object name)
    cdef _column_at(self, Py_ssize_t place)
    cdef dict _whole(self)
    cdef _no_column(self, object name)


@cython.locals(batch=Arrays, n_records=Py_ssize_t, k=int)
cpdef Arrays of_block(ArraysLayout layout, bytes block)
@cython.locals(n_records=Py_ssize_t, is_ragged=bint, n=Py_ssize_t)
cdef Py_ssize_t _made_arrays(dict given) except -1
@cython.locals(batch=Arrays)
cdef Arrays _unpacked(ArraysLayout layout, bytes block)
