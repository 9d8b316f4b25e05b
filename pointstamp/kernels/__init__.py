"""Loops over arrays, compiled: arrays and scalars in, arrays out.

Each kernel is a plain twin in NumPy, which is its oracle in the tests and runs where the core
is not compiled, and a loop of the same name in one of four modules for Cython, a family each:
`hash_loops`, `table_loops`, `graph_loops`, `join_loops`. `forms` chooses.
"""
