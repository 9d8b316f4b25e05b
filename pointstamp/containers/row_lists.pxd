cimport cython

from pointstamp.containers.key_hashes cimport is_its_own_key


cpdef bint is_without_partner(key)

@cython.locals(items=list)
cpdef add_to_list(dict lists, object key, object item)

@cython.locals(i=Py_ssize_t)
cpdef keep_rows(dict lists, list keys, list records, object time)

@cython.locals(
    i=Py_ssize_t, found=dict, of_times=dict, kept=list, item=tuple, pairs=tuple, own=list,
    others=list)
cpdef dict matching_rows(dict lists, list keys, list records, object arrive)

@cython.locals(groups=dict, group=list)
cpdef dict rows_with_values(list batch, object by, object key)

@cython.locals(i=Py_ssize_t, place=Py_ssize_t, places=dict, of_key=list, has_partner=list,
    found=list)
cpdef list joined_rows(
    list left, list left_keys, list right, list right_keys, bint keeps_left, bint keeps_right)

@cython.locals(i=Py_ssize_t, known=set, found=list)
cpdef list rows_with_partners(list left, list left_keys, list right_keys, bint has)
