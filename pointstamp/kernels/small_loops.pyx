"""Loops over the records of small batches: split, packed, without an object for a column.

What each function does is said by its plain twin, of the same name in `partition` and `blocks`.
"""

from cpython.buffer cimport PyBUF_STRIDES, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc
from libc.string cimport memcpy, memset

from pointstamp.kernels.hash_loops cimport combined_hash, hash_span, hash_value


# A small batch of Arrow's, from batch to batches: by the structs of its C data interface, so
# that no object is made for a column.

cdef extern from *:
    """
    #include <stdlib.h>

    struct ArrowArray {
        int64_t length, null_count, offset, n_buffers, n_children;
        const void **buffers;
        struct ArrowArray **children;
        struct ArrowArray *dictionary;
        void (*release)(struct ArrowArray *);
        void *private_data;
    };

    /* What belongs to a batch lies in one piece of memory, which begins with the number of its
       arrays that are not released. Any thread may release them. */
    static void release_part(struct ArrowArray *array) {
        int64_t *n_alive = (int64_t *)array->private_data;
        for (int64_t i = 0; i < array->n_children; i++)
            if (array->children[i]->release) array->children[i]->release(array->children[i]);
        array->release = NULL;
        if (__atomic_sub_fetch(n_alive, 1, __ATOMIC_ACQ_REL) == 0) free(n_alive);
    }
    """
    struct ArrowArray:
        int64_t length
        int64_t null_count
        int64_t offset
        int64_t n_buffers
        int64_t n_children
        const void **buffers
        ArrowArray **children
        ArrowArray *dictionary
        void (*release)(ArrowArray *) noexcept nogil
        void *private_data
    void release_part(ArrowArray *) noexcept nogil

cdef enum:
    MAX_ROWS = 1024
    MAX_COLUMNS = 64
    LINE = 64
    SIGNED = 1
    UNSIGNED = 2
    REAL = 3
    TEXTS = 4


def split_small(
    batch, imported, const uint8_t[::1] kinds, const uint8_t[::1] widths, const int32_t[::1] keys,
    int64_t peers
):
    cdef uint64_t hashes[MAX_ROWS]
    cdef int64_t n_columns = kinds.shape[0]
    cdef int64_t i, peer, n
    cdef ArrowArray source, part
    if n_columns > MAX_COLUMNS:
        return None
    batch._export_to_c(<uintptr_t>&source)
    try:
        n = source.length
        if n > MAX_ROWS or not is_readable(&source, kinds):
            return None
        hash_rows(&source, kinds, widths, keys, hashes)
        for i in range(n):
            hashes[i] %= <uint64_t>peers
        parts = []
        schema = batch.schema
        for peer in range(peers):
            if not make_part(&source, kinds, widths, hashes, <uint64_t>peer, &part):
                raise MemoryError
            try:
                parts.append(imported(<uintptr_t>&part, schema))
            finally:
                if part.release != NULL:
                    part.release(&part)
        return parts
    finally:
        source.release(&source)


cdef bint is_readable(const ArrowArray *source, const uint8_t[::1] kinds) noexcept nogil:
    """Whether no column has nulls: a mask without any may be there all the same."""
    cdef int64_t i
    for i in range(source.n_children):
        if source.children[i].null_count != 0 and source.children[i].buffers[0] != NULL:
            return False
    return True


cdef void hash_rows(
    const ArrowArray *source,
    const uint8_t[::1] kinds,
    const uint8_t[::1] widths,
    const int32_t[::1] keys,
    uint64_t *hashes,
) noexcept nogil:
    cdef int64_t i, k, start, n = source.length
    cdef const ArrowArray *column
    cdef uint64_t hash
    for k in range(keys.shape[0]):
        column = source.children[keys[k]]
        start = source.offset + column.offset
        for i in range(n):
            hash = hash_of(column, kinds[keys[k]], widths[keys[k]], start + i, start + n)
            hashes[i] = combined_hash(hashes[i], hash) if k else hash


cdef inline uint64_t hash_of(
    const ArrowArray *column, uint8_t kind, uint8_t width, int64_t i, int64_t stop
) noexcept nogil:
    cdef const void *data = column.buffers[1]
    cdef const int32_t *bounds
    if kind == TEXTS:
        bounds = <const int32_t *>data
        return hash_span(<const uint8_t *>column.buffers[2], bounds[stop], bounds[i], bounds[i + 1])
    return hash_value(<const uint8_t *>data + i * width, kind, width)


cdef bint make_part(
    const ArrowArray *source,
    const uint8_t[::1] kinds,
    const uint8_t[::1] widths,
    const uint64_t *peer_of,
    uint64_t peer,
    ArrowArray *part,
) noexcept nogil:
    """The records of one peer as a batch of their own; False if there is no memory for it."""
    cdef int64_t i, k, start, n = 0, m = source.n_children
    cdef const ArrowArray *column
    cdef const int32_t *bounds
    cdef ArrowArray *arrays
    cdef const void **buffers
    cdef uint8_t *memory
    cdef uint8_t *data
    cdef int64_t sizes[MAX_COLUMNS]
    for i in range(source.length):
        n += peer_of[i] == peer
    # How much it takes: the count, the arrays and where their data lies, and the data.
    cdef int64_t n_head = 8 + m * (sizeof(ArrowArray) + 4 * sizeof(void *)) + sizeof(void *)
    cdef int64_t n_bytes = n_head + LINE
    for k in range(m):
        sizes[k] = n * widths[k]
        if kinds[k] == TEXTS:
            column = source.children[k]
            bounds = <const int32_t *>column.buffers[1] + source.offset + column.offset
            for i in range(source.length):
                if peer_of[i] == peer:
                    sizes[k] += bounds[i + 1] - bounds[i]
            sizes[k] += (n + 1) * 4 + LINE
        n_bytes += sizes[k] + LINE
    memory = <uint8_t *>calloc(n_bytes, 1)
    if memory == NULL:
        return False
    (<int64_t *>memory)[0] = m + 1
    arrays = <ArrowArray *>(memory + 8)
    part.children = <ArrowArray **>(arrays + m)
    buffers = <const void **>(part.children + m)
    fill_array(part, n, memory, 1, buffers)
    part.n_children = m
    buffers += 1
    data = aligned(<uint8_t *>(buffers + 3 * m))
    for k in range(m):
        column = source.children[k]
        start = source.offset + column.offset
        fill_array(&arrays[k], n, memory, 3 if kinds[k] == TEXTS else 2, buffers)
        part.children[k] = &arrays[k]
        buffers[1] = data
        if kinds[k] == TEXTS:
            buffers[2] = aligned(data + (n + 1) * 4)
            gather_texts(column, start, source.length, peer_of, peer, <int32_t *>data, <uint8_t *>buffers[2])
        else:
            gather_values(
                <const uint8_t *>column.buffers[1] + start * widths[k], widths[k], source.length,
                peer_of, peer, data,
            )
        data = aligned(data + sizes[k])
        buffers += 3
    return True


cdef inline uint8_t *aligned(uint8_t *memory) noexcept nogil:
    return <uint8_t *>((<uintptr_t>memory + LINE - 1) & ~<uintptr_t>(LINE - 1))


cdef inline void fill_array(
    ArrowArray *array, int64_t n, uint8_t *memory, int64_t n_buffers, const void **buffers
) noexcept nogil:
    array.length = n
    array.null_count = 0
    array.offset = 0
    array.n_buffers = n_buffers
    array.n_children = 0
    array.buffers = buffers
    array.dictionary = NULL
    array.release = release_part
    array.private_data = memory


cdef void gather_values(
    const uint8_t *values, uint8_t width, int64_t n, const uint64_t *peer_of, uint64_t peer,
    uint8_t *found,
) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        if peer_of[i] == peer:
            if width == 8:
                memcpy(found, values + 8 * i, 8)
            elif width == 4:
                memcpy(found, values + 4 * i, 4)
            else:
                memcpy(found, values + width * i, width)
            found += width


cdef void gather_texts(
    const ArrowArray *column, int64_t start, int64_t n, const uint64_t *peer_of, uint64_t peer,
    int32_t *found_bounds, uint8_t *found,
) noexcept nogil:
    cdef const int32_t *bounds = <const int32_t *>column.buffers[1] + start
    cdef const uint8_t *texts = <const uint8_t *>column.buffers[2]
    cdef int32_t at = 0, n_bytes
    cdef int64_t i
    found_bounds[0] = 0
    for i in range(n):
        if peer_of[i] == peer:
            n_bytes = bounds[i + 1] - bounds[i]
            memcpy(found + at, texts + bounds[i], n_bytes)
            at += n_bytes
            found_bounds += 1
            found_bounds[0] = at


# A small batch of NumPy columns: one piece of memory, its block, in which the columns lie one
# after the other, so that no object is made for a column.

cdef enum:
    HEAD = 16
    MAX_PARTS = 64

cdef struct Column:
    const uint8_t *data
    Py_ssize_t stride


def split_columns(source, bytes kinds, bytes widths, bytes keys, Py_ssize_t n_parts):
    cdef Column columns[MAX_COLUMNS]
    cdef Py_buffer views[MAX_COLUMNS]
    cdef uint8_t part_of[MAX_ROWS]
    cdef Py_ssize_t counts[MAX_PARTS]
    cdef Py_ssize_t places[MAX_PARTS]
    cdef uint8_t *blocks[MAX_PARTS]
    cdef Py_ssize_t i, k, part, n, n_open = 0, n_columns = len(widths), n_keys = len(keys)
    cdef uint64_t hash, word
    cdef uint8_t of
    n = n_records_in(source, widths)
    if len(kinds) != n_columns:
        raise ValueError(f"{n_columns} columns, of {len(kinds)} kinds")
    if not (n <= MAX_ROWS and n_columns <= MAX_COLUMNS and 0 < n_parts <= MAX_PARTS):
        raise ValueError(f"{n} records of {n_columns} columns are not split so in {n_parts}")
    try:
        open_columns(source, n, widths, columns, views, &n_open)
        memset(counts, 0, sizeof(counts))
        for i in range(n):
            hash = 0
            for k in range(n_keys):
                of = keys[k]
                if of >= n_columns:
                    raise IndexError(f"column {of} of {n_columns}")
                word = hash_value(
                    columns[of].data + i * columns[of].stride, kinds[of], widths[of]
                )
                hash = combined_hash(hash, word) if k else word
            part_of[i] = <uint8_t>(hash % <uint64_t>n_parts)
            counts[part_of[i]] += 1
        found = []
        for part in range(n_parts):
            block = new_block(counts[part], widths)
            blocks[part] = <uint8_t *>PyBytes_AS_STRING(block)
            places[part] = HEAD
            found.append(block)
        for k in range(n_columns):
            scatter(columns[k], widths[k], n, part_of, blocks, places)
            for part in range(n_parts):
                places[part] = padded(places[part])
        return found
    finally:
        for k in range(n_open):
            PyBuffer_Release(&views[k])


def pack_columns(list sources, bytes widths):
    cdef Column columns[MAX_COLUMNS]
    cdef Py_buffer views[MAX_COLUMNS]
    cdef Py_ssize_t k, n, n_open, at, before = 0, total = 0, n_columns = len(widths)
    cdef uint8_t *data
    if n_columns > MAX_COLUMNS:
        raise ValueError(f"{n_columns} columns are not packed so")
    for source in sources:
        total += n_records_in(source, widths)
    block = new_block(total, widths)
    data = <uint8_t *>PyBytes_AS_STRING(block)
    for source in sources:
        n = n_records_in(source, widths)
        n_open = 0
        try:
            open_columns(source, n, widths, columns, views, &n_open)
            at = HEAD
            for k in range(n_columns):
                copy_column(columns[k], widths[k], n, data + at + before * widths[k])
                at += padded(total * widths[k])
        finally:
            for k in range(n_open):
                PyBuffer_Release(&views[k])
        before += n
    return block


cdef inline Py_ssize_t padded(Py_ssize_t n_bytes) noexcept nogil:
    return (n_bytes + HEAD - 1) & ~<Py_ssize_t>(HEAD - 1)


cdef Py_ssize_t block_size(Py_ssize_t n, bytes widths):
    cdef Py_ssize_t k, size = HEAD
    for k in range(len(widths)):
        size += padded(n * <Py_ssize_t><uint8_t>widths[k])
    return size


cdef bytes new_block(Py_ssize_t n, bytes widths):
    """Memory for so many records, of which only their number is written."""
    cdef Py_ssize_t k, size = block_size(n, widths)
    cdef bytes block = PyBytes_FromStringAndSize(NULL, size)
    cdef uint8_t *data = <uint8_t *>PyBytes_AS_STRING(block)
    memset(data, 0, size)
    for k in range(8):
        data[k] = <uint8_t>(n >> 8 * k)
    return block


cdef Py_ssize_t n_records_in(source, bytes widths) except -1:
    cdef const uint8_t *data
    cdef Py_ssize_t k, n = 0, size
    if type(source) is not bytes:
        if len(<list?>source) != len(widths) or not widths:
            raise ValueError(f"{len(source)} columns, of {len(widths)} widths")
        return len((<list>source)[0])
    size = len(source)
    data = <const uint8_t *>PyBytes_AS_STRING(source)
    if size >= HEAD:
        for k in range(8):
            n |= <Py_ssize_t>data[k] << 8 * k
    if size < HEAD or not 0 <= n <= size or size != block_size(n, widths):
        raise ValueError(f"a block of {size} bytes is none of {n} records of {list(widths)} bytes")
    return n


cdef int open_columns(
    source, Py_ssize_t n, bytes widths, Column *columns, Py_buffer *views, Py_ssize_t *n_open
) except -1:
    """Where the columns lie; views of them are to be released, so many as are open."""
    cdef Py_ssize_t k, at = HEAD
    cdef uint8_t width
    cdef const uint8_t *data
    if type(source) is bytes:
        data = <const uint8_t *>PyBytes_AS_STRING(source)
        for k in range(len(widths)):
            width = widths[k]
            columns[k].data = data + at
            columns[k].stride = width
            at += padded(n * width)
        return 0
    for k in range(len(widths)):
        PyObject_GetBuffer((<list>source)[k], &views[k], PyBUF_STRIDES)
        n_open[0] = k + 1
        if views[k].ndim != 1 or views[k].shape[0] != n or views[k].itemsize != <uint8_t>widths[k]:
            raise ValueError(
                f"column {k} is not {n} values of {<int><uint8_t>widths[k]} bytes each"
            )
        columns[k].data = <const uint8_t *>views[k].buf
        columns[k].stride = views[k].strides[0]
    return 0


cdef void scatter(
    Column column, uint8_t width, Py_ssize_t n, const uint8_t *part_of, uint8_t **blocks,
    Py_ssize_t *places,
) noexcept nogil:
    """Each value behind those of its part; `places` go on by what was written."""
    cdef Py_ssize_t i, at
    cdef const uint8_t *value = column.data
    for i in range(n):
        at = places[part_of[i]]
        if width == 8:
            memcpy(blocks[part_of[i]] + at, value, 8)
        elif width == 4:
            memcpy(blocks[part_of[i]] + at, value, 4)
        else:
            memcpy(blocks[part_of[i]] + at, value, width)
        places[part_of[i]] = at + width
        value += column.stride


cdef void copy_column(Column column, uint8_t width, Py_ssize_t n, uint8_t *found) noexcept nogil:
    cdef Py_ssize_t i
    if n and column.stride == width:
        memcpy(found, column.data, n * width)
        return
    for i in range(n):
        memcpy(found + i * width, column.data + i * column.stride, width)
