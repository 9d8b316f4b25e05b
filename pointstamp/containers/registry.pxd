cimport cython

from pointstamp.containers.arrays cimport Arrays
from pointstamp.containers.rows cimport n_bytes_of_rows

cdef set _sized
cdef object _ARRAYS

@cython.locals(form=type, kinds=dict)
cpdef kind_of(batch)
cpdef Py_ssize_t n_records(batch) except -1
@cython.locals(arrays=Arrays)
cpdef batch_schema(kind, batch)
@cython.locals(arrays=Arrays)
cpdef Py_ssize_t batch_bytes(kind, batch) except -1
