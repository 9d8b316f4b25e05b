"""The loop over records that runs the instructions of an expression.

What each function does, and of which shapes, is said by its plain twin, of the same name in
`evaluate`.
"""

from libc.stdint cimport int64_t

from pointstamp.kernels.arrays cimport Table, import_arrays, look_at, new_rows
from pointstamp.kernels.update_loops cimport copy

import_arrays()

cdef extern from *:
    bint __builtin_add_overflow(int64_t, int64_t, int64_t *) noexcept nogil
    bint __builtin_sub_overflow(int64_t, int64_t, int64_t *) noexcept nogil
    bint __builtin_mul_overflow(int64_t, int64_t, int64_t *) noexcept nogil

cdef enum:
    MOST_DEPTH = 32

# As in `evaluate.Do`.
cdef enum:
    WORD = 0
    FLOAT = 1
    CONSTANT = 2
    ADD = 3
    SUBTRACT = 4
    MULTIPLY = 5
    FLOOR_DIVIDE = 6
    RANGE = 7
    ADD_FLOATS = 8
    SUBTRACT_FLOATS = 9
    MULTIPLY_FLOATS = 10
    DIVIDE_FLOATS = 11
    TO_FLOAT = 12
    ORDER = 13
    EQUAL = 14
    NOT_EQUAL = 15
    LESS = 16
    LESS_EQUAL = 17
    GREATER = 18
    GREATER_EQUAL = 19
    AND = 20
    OR = 21
    NOT = 22
    IS_NULL = 23
    IS_THERE = 24
    FIRST_THERE = 25
    CHOOSE = 26
    STORE = 27

cdef int64_t BITS = 0x7FFFFFFFFFFFFFFF
cdef int64_t NAN_WORD = 0x7FF8000000000000

cdef union Value:
    int64_t word
    double number


cdef int64_t in_order(double number) noexcept nogil:
    """The word of a float."""
    cdef Value value
    if number != number:
        return NAN_WORD
    value.number = number + 0.0
    return value.word ^ BITS if value.word < 0 else value.word


cdef bint run(
    const int64_t *row, const int64_t *code, Py_ssize_t n, Value *stack, bint *there, int64_t *into
) noexcept nogil:
    """Run the instructions on one row; whether it is not refused."""
    cdef Py_ssize_t k, chosen, top = -1
    cdef int64_t do, a, b, word
    cdef bint both
    for k in range(n):
        do, a, b = code[3 * k], code[3 * k + 1], code[3 * k + 2]
        if do == WORD or do == FLOAT:
            top += 1
            word = row[a]
            stack[top].word = word ^ BITS if do == FLOAT and word < 0 else word
            there[top] = not b or row[a - 1] != 0
        elif do == CONSTANT:
            top += 1
            stack[top].word = a
            there[top] = not b
        elif do == STORE:
            into[a] = stack[top].word if there[top] else 0
            if b:
                into[a - 1] = there[top]
            top -= 1
        elif do == NOT:
            stack[top].word = not stack[top].word
        elif do == IS_NULL:
            stack[top].word = not there[top]
            there[top] = True
        elif do == IS_THERE:
            stack[top].word = there[top]
            there[top] = True
        elif do == FLOOR_DIVIDE:
            word = stack[top].word // a  # towards 0, as in C
            stack[top].word = word - (word * a > stack[top].word)
        elif do == RANGE:
            if there[top] and not (a <= stack[top].word and stack[top].word <= b):
                return False
        elif do == TO_FLOAT:
            word = stack[top].word
            stack[top].word = a
            stack[top].number = <double>word / stack[top].number
        elif do == ORDER:
            stack[top].word = in_order(stack[top].number)
        elif do == CHOOSE:
            top -= 2
            chosen = top + 1 if there[top] and stack[top].word else top + 2
            stack[top] = stack[chosen]
            there[top] = there[chosen]
        elif do == FIRST_THERE:
            top -= 1
            if not there[top]:
                stack[top] = stack[top + 1]
                there[top] = there[top + 1]
        elif do == AND or do == OR:
            top -= 1
            both = there[top] and there[top + 1]
            if (there[top] and (stack[top].word != 0) == (do == OR)) or (
                there[top + 1] and (stack[top + 1].word != 0) == (do == OR)
            ):
                stack[top].word = do == OR
                there[top] = True
            else:
                stack[top].word = do == AND
                there[top] = both
        else:
            top -= 1
            there[top] = there[top] and there[top + 1]
            if not there[top]:
                stack[top].word = 0
            elif not of_two(do, &stack[top], &stack[top + 1]):
                return False
    return True


cdef bint of_two(int64_t do, Value *one, Value *two) noexcept nogil:
    """Put what is made of two values in the place of the first; whether it is not refused."""
    cdef int64_t a = one.word, b = two.word
    if do == ADD:
        return not __builtin_add_overflow(a, b, &one.word)
    if do == SUBTRACT:
        return not __builtin_sub_overflow(a, b, &one.word)
    if do == MULTIPLY:
        return not __builtin_mul_overflow(a, b, &one.word)
    if do == ADD_FLOATS:
        one.number = one.number + two.number
    elif do == SUBTRACT_FLOATS:
        one.number = one.number - two.number
    elif do == MULTIPLY_FLOATS:
        one.number = one.number * two.number
    elif do == DIVIDE_FLOATS:
        if two.number == 0:
            return False
        one.number = one.number / two.number
    elif do == EQUAL:
        one.word = a == b
    elif do == NOT_EQUAL:
        one.word = a != b
    elif do == LESS:
        one.word = a < b
    elif do == LESS_EQUAL:
        one.word = a <= b
    elif do == GREATER:
        one.word = a > b
    else:
        one.word = a >= b
    return True


def evaluate_rows(rows, instructions, Py_ssize_t n_words):
    cdef Table given, asked, made
    cdef Py_ssize_t i
    cdef Value stack[MOST_DEPTH]
    cdef bint there[MOST_DEPTH]
    cdef bint goes = True
    cdef const int64_t *row
    cdef int64_t *into
    look_at(rows, &given)
    look_at(instructions, &asked)
    array = new_rows(given.n, n_words + 1)
    look_at(array, &made)
    with nogil:
        for i in range(given.n):
            row = given.rows + i * given.width
            into = <int64_t *>made.rows + i * made.width
            goes = run(row, asked.rows, asked.n, stack, there, into)
            if not goes:
                break
            into[n_words] = row[given.width - 1]
    return array if goes else None


def keep_rows(rows, instructions):
    cdef Table given, asked, kept
    cdef Py_ssize_t i, n_kept = 0
    cdef Value stack[MOST_DEPTH]
    cdef bint there[MOST_DEPTH]
    cdef bint goes = True
    cdef const int64_t *row
    look_at(rows, &given)
    look_at(instructions, &asked)
    array = new_rows(given.n, given.width)
    look_at(array, &kept)
    with nogil:
        for i in range(given.n):
            row = given.rows + i * given.width
            goes = run(row, asked.rows, asked.n, stack, there, NULL)
            if not goes:
                break
            if there[0] and stack[0].word:
                copy(<int64_t *>kept.rows + n_kept * kept.width, row, given.width)
                n_kept += 1
    if not goes:
        return None
    return array if n_kept == given.n else array[:n_kept]
