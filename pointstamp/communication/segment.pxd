cimport cython

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define POINTSTAMP_HAS_FENCE 1
    static CYTHON_INLINE void pointstamp_fence(void) { __sync_synchronize(); }
    #else
    #define POINTSTAMP_HAS_FENCE 0
    static CYTHON_INLINE void pointstamp_fence(void) { }
    #endif
    """
    bint _HAS_FENCE "POINTSTAMP_HAS_FENCE"
    void _fence_in_c "pointstamp_fence" () noexcept

cdef bint _FENCES


@cython.final
cdef class Fence:
    cdef readonly object _lock
    cdef readonly bint is_needed_between

    cpdef int full(self) except -1
    cpdef int between(self) except -1
