cimport cython

from pointstamp.containers.layouts cimport ArraysLayout

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
cpdef read_only(array)
@cython.locals(batch=Arrays)
cdef Arrays _unpacked(ArraysLayout layout, bytes block)
