"""Timely dataflow for Python, with its data pipeline on Apache Spark."""

from __future__ import annotations

__version__ = "0.1.0"
