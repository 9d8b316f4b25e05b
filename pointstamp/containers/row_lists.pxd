cimport cython

from pointstamp.containers.key_hashes cimport is_its_own_key


@cython.locals(i=Py_ssize_t, kept=list)
cpdef keep_rows(dict lists, list keys, list records, object time)

@cython.locals(
    i=Py_ssize_t, found=dict, of_times=dict, kept=list, item=tuple, pairs=tuple, own=list,
    others=list)
cpdef dict matching_rows(dict lists, list keys, list records, object arrive)

@cython.locals(groups=dict, group=list)
cpdef dict rows_with_values(list batch, object by, object key)
