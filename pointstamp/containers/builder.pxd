cimport cython

from pointstamp.containers.registry cimport kind_of, batch_bytes, n_records, batch_schema

cdef double _MOST_RECORDS
cdef double _MOST_BYTES


@cython.final
cdef class Builder:
    cdef readonly object ready
    cdef list _rows
    cdef Py_ssize_t _look_at
    cdef list _batches
    cdef object _kind
    cdef Py_ssize_t _n_records
    cdef double _fill
    cdef dict _schemas
    cdef object _schema

    @cython.locals(rows=list)
    cpdef give(self, object record)
    cpdef bint is_empty(self) except -1
    @cython.locals(n=Py_ssize_t)
    cpdef give_batch(self, object batch)
    cpdef flush(self)
    cdef _give_rows(self, list batch)
    cdef _flush_rows(self)
    cdef _flush_batches(self)
    @cython.locals(fill=double)
    cdef _give_columns(self, kind, batch, Py_ssize_t n)
    cdef _check_schema(self, kind, schema)
    @cython.locals(n=Py_ssize_t, fill=double)
    cdef _cut(self, kind, batch)


cdef double _fill_of(kind, batch, Py_ssize_t n) except -1
