cdef extern from *:
    """
    /* As in numpy/ndarraytypes.h, up to the last one that is read. */
    typedef struct {
        PyObject_HEAD
        char *data;
        int n_dimensions;
        Py_ssize_t *shape;
        Py_ssize_t *strides;
        PyObject *base;
        PyObject *dtype;
        int flags;
    } PointstampArray;

    #define POINTSTAMP_WRITEABLE 0x0400

    static CYTHON_INLINE Py_ssize_t pointstamp_n_values(PyObject *array) {
        PointstampArray *fields = (PointstampArray *)array;
        return fields->n_dimensions == 1 ? fields->shape[0] : -1;
    }
    static CYTHON_INLINE size_t pointstamp_data(PyObject *array) {
        return (size_t)((PointstampArray *)array)->data;
    }
    static CYTHON_INLINE int pointstamp_are_of(
        PyObject *columns, PyObject *names, PyObject *dtypes
    ) {
        PyObject *name, *array;
        Py_ssize_t at = 0, place = 0;
        if (PyDict_Size(columns) != PyTuple_GET_SIZE(names)) return 0;
        while (PyDict_Next(columns, &at, &name, &array)) {
            if (name != PyTuple_GET_ITEM(names, place)) return 0;
            if (((PointstampArray *)array)->dtype != PyTuple_GET_ITEM(dtypes, place)) return 0;
            place++;
        }
        return 1;
    }
    static CYTHON_INLINE int pointstamp_is_writeable(PyObject *array) {
        return (((PointstampArray *)array)->flags & POINTSTAMP_WRITEABLE) != 0;
    }
    static CYTHON_INLINE void pointstamp_forbid_writing(PyObject *array) {
        ((PointstampArray *)array)->flags &= ~POINTSTAMP_WRITEABLE;
    }
    static CYTHON_INLINE int pointstamp_are_put(PyObject *values, PyObject *array) {
        long long *data = (long long *)((PointstampArray *)array)->data;
        Py_ssize_t n = ((PointstampArray *)array)->shape[0];
        if (PyList_GET_SIZE(values) != n) return 0;
        for (Py_ssize_t i = 0; i < n; i++) {
            PyObject *value = PyList_GET_ITEM(values, i);
            int overflow = 0;
            if (!PyLong_CheckExact(value)) return 0;
            data[i] = PyLong_AsLongLongAndOverflow(value, &overflow);
            if (overflow) return 0;
        }
        return 1;
    }
    """
    Py_ssize_t _n_in_c "pointstamp_n_values" (object array) noexcept
    size_t _data_in_c "pointstamp_data" (object array) noexcept
    bint _are_of_in_c "pointstamp_are_of" (object columns, object names, object dtypes) noexcept
    bint _is_writeable_in_c "pointstamp_is_writeable" (object array) noexcept
    void _forbid_writing_in_c "pointstamp_forbid_writing" (object array) noexcept
    bint _are_put_in_c "pointstamp_are_put" (object values, object array) noexcept

cdef bint _IS_COMPILED
cdef bint _READS
cdef bint _MAKES_INTEGERS
cdef object _INTEGER
cdef object _new_array


cpdef Py_ssize_t n_values(array) except -2
cpdef bint are_of(dict columns, tuple names, tuple dtypes) except -1
cpdef read_only(array)
cpdef of_integers(list values)
