"""Graphs of tables: vertices and edges with any columns, ids of any type.

The one part of the graph algorithms that knows Arrow, because attributes are Arrow columns.
Nothing here is imported before `pointstamp.graph.Graph` is used.
"""
