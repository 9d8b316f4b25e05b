cimport cython

from pointstamp.progress.change_batch cimport ChangeBatch


cdef class Accumulation:
    cdef dict _held
    cdef object _is_source
    cdef object _crosses
    cdef object _tracker
    cdef object _hand_on
    cdef object _send_out
    cdef ChangeBatch _to_workers
    cdef ChangeBatch _to_machines
    cdef dict _merged

    cpdef add(self, object updates, object worker=*)
    cpdef add_from_outside(self, object updates)
    cdef bint _is_needed_elsewhere(self) except -1
    cdef bint _is_needed_here(self) except -1
