cimport cython

cdef object _empty
cdef object _int64


cdef class RowEncoder:
    cdef object _schema
    cdef list _names
    cdef list _types
    cdef list _to_words
    cdef list _to_values
    cdef list _are_nullable
    cdef list _bounds
    cdef Py_ssize_t _width

    @cython.locals(n=Py_ssize_t, place=Py_ssize_t, words="long long[:, ::1]", rows=list)
    cpdef updates(self, object given, long long diff, object where)
    @cython.locals(place=Py_ssize_t, words="long long[:, ::1]")
    cpdef pairs(self, object given, object where)
    @cython.locals(
        place=Py_ssize_t, at=Py_ssize_t, column=Py_ssize_t, words="const long long[:, :]",
        row=list, found=list,
    )
    cpdef list rows(self, object updates)
    @cython.locals(at=Py_ssize_t, column=Py_ssize_t, is_nullable=bint, bounds=tuple)
    cdef _write(self, long long[:, ::1] words, Py_ssize_t place, object given, object where)
    cdef _as_sequence(self, object row, Py_ssize_t place, object where)
    cdef _refused(self, object row, Py_ssize_t place, object where)
