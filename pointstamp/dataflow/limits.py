"""Limits of a dataflow, for those that only name them."""

LIMIT_BYTES = 64 << 20
"""In flight on one channel from one worker to another, by default; see `backpressure`."""
