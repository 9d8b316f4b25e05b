cimport cython

cdef Py_ssize_t MANY_WORDS
cdef object concatenate
cdef object rows_of


cdef class RowEncoder:
    cdef object _schema
    cdef list _names
    cdef list _types
    cdef list _to_words
    cdef list _to_values
    cdef list _are_nullable
    cdef list _bounds
    cdef Py_ssize_t _width

    @cython.locals(place=Py_ssize_t, words=list, parts=list, rows=list)
    cpdef updates(self, object given, long long diff, object where)
    @cython.locals(place=Py_ssize_t, words=list, parts=list)
    cpdef pairs(self, object given, object where)
    @cython.locals(
        place=Py_ssize_t, at=Py_ssize_t, column=Py_ssize_t, words="const long long[:, :]",
        row=list, found=list,
    )
    cpdef list rows(self, object updates)
    cdef _end_part(self, list words, list parts)
    cdef _in_one(self, list words, list parts)
    @cython.locals(column=Py_ssize_t, is_nullable=bint, bounds=tuple)
    cdef _write(self, list words, Py_ssize_t place, object given, object where)
    cdef _as_sequence(self, object row, Py_ssize_t place, object where)
    cdef _refused(self, object row, Py_ssize_t place, object where)
