"""Incremental collections: multisets of records that change, and what is kept up to date of them.

A collection is carried by a stream of updates (`containers/updates.py`), each the words of a
record, and a diff. An operator turns changes of its input into changes of its output, so that at
every complete time its output is what it would compute from scratch.
"""
