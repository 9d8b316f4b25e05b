"""Loops over arrays, compiled: arrays and scalars in, arrays out.

Each kernel is a plain twin in NumPy, which is its oracle in the tests and runs where the core
is not compiled, and a loop of the same name in one of the modules for Cython, a family each, such
as `hash_loops`, `graph_loops`, `update_loops`. `forms` chooses.
"""
