"""The operators, one idea per file; `Stream` and `Scope` offer them as methods.

An operator is a function from streams to streams. It makes new ones only through
an `OperatorBuilder`, so everything here can be written outside the package too.
"""
