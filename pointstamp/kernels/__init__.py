"""Loops over arrays, compiled: arrays and scalars in, arrays out.

The only folder that imports Numba, and only when a kernel is first called. Each
kernel has a plain NumPy twin that is its oracle in the tests, and that runs in
its place with `POINTSTAMP_NUMBA=0` or where Numba cannot be imported.
"""
