"""Putting dataflows together: scopes, streams, operators, capabilities, probes.

`channels` is the one seam where data touches progress.
"""
