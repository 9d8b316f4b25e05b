cimport cython

from pointstamp.containers.array_fields cimport are_of

cdef Py_ssize_t _FEW


@cython.final
cdef class ArraysLayout:
    cdef readonly tuple names
    cdef readonly tuple dtypes
    cdef readonly tuple schema
    cdef readonly Py_ssize_t record_bytes
    cdef readonly bint is_flat
    cdef readonly bytes widths
    cdef readonly bytes kinds
    cdef dict _places
    cdef dict _keys
    cdef bytes _header

    cpdef Py_ssize_t place_of(self, object name) except -2
    @cython.locals(at=Py_ssize_t, i=Py_ssize_t, n=Py_ssize_t)
    cpdef list starts_in(self, Py_ssize_t n_records)
    cpdef keys_of(self, object key)
    cpdef bytes header(self)


cdef dict _layouts
cdef dict _from_headers
cdef list _latest

@cython.locals(known=ArraysLayout)
cpdef ArraysLayout layout_of(dict columns)
@cython.locals(named=list, found=ArraysLayout)
cdef ArraysLayout _look_up(dict columns)
cpdef ArraysLayout layout_from(bytes header)
cdef ArraysLayout _layout(tuple named)
