from cpython.time cimport PyTime_PerfCounterRaw as _perf_counter_in_c

cdef extern from *:
    """
    #if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
    #define POINTSTAMP_HAS_COUNTER 1
    static CYTHON_INLINE long long pointstamp_counter(void) {
        return (long long) __builtin_ia32_rdtsc();
    }
    #else
    #define POINTSTAMP_HAS_COUNTER 0
    static CYTHON_INLINE long long pointstamp_counter(void) { return 0; }
    #endif
    """
    bint _HAS_COUNTER "POINTSTAMP_HAS_COUNTER"
    long long _counter_in_c "pointstamp_counter" () noexcept

cdef bint _IS_COMPILED
cdef bint _COUNTS


cpdef long long now_ns() noexcept
cpdef long long ticks() noexcept
