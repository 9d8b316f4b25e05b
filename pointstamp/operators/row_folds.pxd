cimport cython

from pointstamp.containers.key_hashes cimport is_its_own_key
from pointstamp.containers.rows cimport found_key
from pointstamp.dataflow.handles cimport Session


@cython.locals(is_shared=bint, pair=tuple)
cpdef fold_rows(list batch, object key, object fold, dict aggregates, object default, str operator)

@cython.locals(values=dict, pair=tuple)
cpdef list reduce_rows(list batch, object key, object function, str operator)

@cython.locals(is_shared=bint, pair=tuple)
cpdef take_turns(
    object batch, object key, object turn, object states, object default, Session session,
    str operator, bint of_columns)

cpdef checked_turn(object turned, object of, str operator)

cdef _give(Session session, object answers, object of, str operator)

cdef tuple _pair_of(object record, object key, str operator)
