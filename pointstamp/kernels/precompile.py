"""Compile all kernels ahead, so that no first run has to.

Compiled code is kept on disk: this pays once per machine, or once when an image is
built. Without it a kernel is compiled when it is first called, and only those that
are called are.

The forms are what the callers give, which make their arguments alike (`contiguous`,
int64, int32) so that there are few. Kernels that only kernels call are compiled with
those.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import cast

from pointstamp.kernels.jit import Kernel, numba_wanted

FORMS: dict[str, dict[str, tuple[str, ...]]] = {
    "csr": {
        "split_packed": ("i8 int int int",),
        "find_spans": ("I8 I8 I4 bool I8",),
    },
    "permute": {"_gather": ("U1 I8", "U2 I8", "U4 I8", "U8 I8")},
    "hash_join": {
        "_add_values": ("i8.2 int i8 int I8 I8 int",),
        "_find_values": ("i8.2 int i8 int I8",),
    },
    "hashing": {
        "_hash_words": ("U8",),
        "_float_words": ("F8",),
        "_hash_slices": ("I8 I8 U1",),
        "_combine_all": ("U8 U8",),
    },
    "intersect": {
        "extend": ("I4 I4 I4 i1 i8.2 i8.2 i4.2 u1 int int int bool i8 i4",),
        "are_members": ("I4 i8 i8 I4",),
    },
    "lists": {
        "_flag": ("I8 int b1",),
        "find_numbers": ("I8 I4 bool I8",),
        "_place": ("I4 I4 i8 i4", "I4 I8 i8 i8", "I4 F8 i8 f8", "I4 I1 i8 i1"),
        "_count": ("I4 i8",),
        "_unpack": ("i8 int",),
    },
    "partition": {"_partition": ("U8 int",)},
    "peel": {"peel": ("I8 I8 I4 I8 I8 I4 i8 i8 b1 i4",)},
    "reach": {
        "expand": ("I8 I8 I4 i4 i8 int",),
        "spread_least": ("I8 I8 I4 i8 b1 i4 i4 b1",),
        "reach_alike": ("I8 I8 I4 i8 b1 i4",),
        "shorten": ("I8 I8 I4 F8 f8 i4 i4 i4",),
    },
    "sorting": {"_distinct": ("I8",)},
    "sums": {"sum_lists": ("I8 I8 I4 F8",)},
    "key_tables": {
        "hash_rows": ("I8 int",),
        "refill": ("i8.2 i8.2",),
    },
    "triads": {"count_triads": ("I4 I8 I8 I4 I1 I8 I8 I4 I1 i8",)},
    "unionfind": {"least_roots": ("i4 i4 int",)},
    "votes": {
        "common_labels": ("I8 I8 I4 I8 I8 I4 I8",),
        "lower_cores": ("I8 I8 I4 I8 I8 I4 i8 i4 i4 b1",),
    },
}
"""By file and name, the types of the arguments; see `Kernel.compile`."""


def kernel_of(file: str, name: str) -> Kernel[..., object]:
    """A kernel by the file that it is in, and its name."""
    module = importlib.import_module(f"pointstamp.kernels.{file}")
    return cast("Kernel[..., object]", getattr(module, name))


def compile_all(report: Callable[[str, int, int], None] | None = None) -> int:
    """Compile every kernel that the disk cache does not have yet.

    Parameters
    ----------
    report : callable, optional
        Called after each form with the kernel's name, how many forms are done, and how
        many there are.

    Returns
    -------
    int
        How many forms were compiled: 0 where all were cached, or where kernels run plain.
    """
    if not numba_wanted():
        return 0
    forms = [(f, n, form) for f, names in FORMS.items() for n, fs in names.items() for form in fs]
    for done, (file, name, form) in enumerate(forms, 1):
        kernel_of(file, name).compile(form)
        if report is not None:
            report(f"{file}.{name.lstrip('_')}", done, len(forms))
    return sum(kernel_of(file, name).n_compiled for file, name in {f[:2] for f in forms})
