"""Moves containers between workers, and knows nothing of progress.

`communicator` says what a communicator is. There is one for a lone worker
(`single`), for threads (`threads`), for processes and machines connected by
streams of bytes (`mesh`, over `framing`), and for simulation (`simulated`).
`tcp` connects the processes that a list of addresses names (`authentication`
before anything else), `launch` starts threads and processes and reports the
first cause (`failure`) when one of them stops.
"""
