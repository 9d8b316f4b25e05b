"""Random programs for one engine each: `check_...(seed)` raises where it is wrong."""
