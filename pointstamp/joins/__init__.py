"""Worst-case optimal joins: a motif's vertices bound one after the other.

`plan` chooses the order, `tactics` do the work on arrays, `operators` reason about
times, and `generic` lays a plan out as a dataflow.
"""

from __future__ import annotations

from pointstamp.joins.generic_join import GenericJoin
from pointstamp.joins.plan import Plan, make_plan

__all__ = ["GenericJoin", "Plan", "make_plan"]
