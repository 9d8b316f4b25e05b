from libc.stdint cimport int64_t, uint8_t, uint64_t

cdef uint64_t combined_hash(uint64_t hash, uint64_t more) noexcept nogil
cdef uint64_t hash_span(
    const uint8_t *data, Py_ssize_t n_data, int64_t start, int64_t stop
) noexcept nogil
cdef uint64_t hash_value(const uint8_t *at, uint8_t kind, uint8_t width) noexcept nogil
