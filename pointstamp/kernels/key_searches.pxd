"""How a table of keys is searched: `key_tables.build_table` has its plain twin."""

from libc.stdint cimport int32_t, int64_t, uint64_t

ctypedef const int64_t[::1] Ints
ctypedef const int32_t[::1] Numbers


cdef inline int64_t first_slot(int64_t key, int n_bits) noexcept nogil:
    """Where a key's search begins in a table of `2^n_bits` slots, `n_bits` above 0."""
    return <int64_t>((<uint64_t>key * <uint64_t>0x9E3779B97F4A7C15) >> (64 - n_bits))


cdef inline int bits_of(int64_t n_slots) noexcept nogil:
    """The exponent of the least power of two that is not below `n_slots`."""
    cdef int n_bits = 0
    while (<int64_t>1 << n_bits) < n_slots:
        n_bits += 1
    return n_bits


cdef inline int64_t row_of(
    Ints keys, Numbers table, bint dense, int n_bits, int64_t key
) noexcept nogil:
    """The row of `key`, or -1; `keys` has one at least, `n_bits` is `bits_of` the table."""
    cdef int64_t slot
    if key < keys[0] or key > keys[keys.shape[0] - 1]:
        return -1
    if dense:
        return table[key - keys[0]]
    slot = first_slot(key, n_bits)
    while table[slot] >= 0 and keys[table[slot]] != key:
        slot = (slot + 1) & (table.shape[0] - 1)
    return table[slot]


cdef inline int64_t row_or_none(
    Ints keys, Numbers table, bint dense, int n_bits, int64_t low, int64_t key
) noexcept nogil:
    """The row of `key`, or -1; `low` is the first of `keys`, of which there may be none."""
    cdef uint64_t at
    if dense:
        at = <uint64_t>key - <uint64_t>low
        return table[at] if at < <uint64_t>table.shape[0] else -1
    return row_of(keys, table, dense, n_bits, key)
