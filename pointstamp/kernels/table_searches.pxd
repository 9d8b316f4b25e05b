"""Searches in tables of slots, of which the first word is a key and the second 0 where there is none."""

from libc.stdint cimport int64_t, uint64_t

cdef extern from *:
    void __builtin_prefetch(const void *) noexcept nogil

cdef enum:
    BLOCK = 256  # how many keys are looked up at a time


cdef inline int64_t first_slot(int64_t key, int n_bits) noexcept nogil:
    """Where a key's search begins in a table of `2^n_bits` slots, `n_bits` above 0."""
    return <int64_t>((<uint64_t>key * <uint64_t>0x9E3779B97F4A7C15) >> (64 - n_bits))


cdef inline int bits_of(int64_t n_slots) noexcept nogil:
    """The exponent of the least power of two that is not below `n_slots`."""
    cdef int n_bits = 0
    while (<int64_t>1 << n_bits) < n_slots:
        n_bits += 1
    return n_bits


cdef inline int64_t slot_from(
    const int64_t[:, ::1] slots, int64_t slot, int64_t key
) noexcept nogil:
    """The end of a search that has come to `slot`."""
    while slots[slot, 1] != 0 and slots[slot, 0] != key:
        slot = (slot + 1) & (slots.shape[0] - 1)
    return slot


cdef inline int64_t slot_of(const int64_t[:, ::1] slots, int n_bits, int64_t key) noexcept nogil:
    """The slot that has `key`, or the empty one that it belongs in; `n_bits` of the slots."""
    return slot_from(slots, first_slot(key, n_bits), key)


cdef inline void prefetch(
    const int64_t[:, ::1] slots,
    int n_bits,
    const int64_t[::1] keys,
    Py_ssize_t start,
    Py_ssize_t stop,
) noexcept nogil:
    """Have the first slots of `keys[start:stop]` brought near."""
    cdef Py_ssize_t i
    for i in range(start, stop):
        __builtin_prefetch(&slots[first_slot(keys[i], n_bits), 0])
