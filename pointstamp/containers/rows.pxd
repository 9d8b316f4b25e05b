cimport cython

from pointstamp.containers.key_hashes cimport is_its_own_key, split_by_hash

cdef Py_ssize_t _TUPLE
cdef Py_ssize_t _FLOAT
cdef Py_ssize_t _INT
cdef Py_ssize_t _SMALL_INT
cdef long long _DIGIT
cdef long long _WORD


@cython.locals(size=Py_ssize_t, n_sampled=Py_ssize_t, place=Py_ssize_t)
cdef Py_ssize_t _mean_n_bytes(list batch, Py_ssize_t step) except -1
@cython.locals(size=Py_ssize_t)
cdef Py_ssize_t _n_bytes_of(object record) except -1
@cython.locals(small="long long")
cdef Py_ssize_t _n_bytes_alone(object record) except -1
@cython.locals(n=Py_ssize_t)
cpdef Py_ssize_t n_bytes_of_rows(list batch) except -1
cpdef object found_key(object key)

@cython.locals(groups=dict, group=list)
cdef dict _groups(list batch, object key)
