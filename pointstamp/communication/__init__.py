"""Moves containers between workers, and knows nothing of progress.

`communicator` says what a communicator is. There is one for a lone worker
(`single`), for threads (`threads`), for processes and machines (`mesh`), and for
simulation (`simulated`). A mesh has a `link` to each peer: over a stream of bytes
(`stream_link`, with `framing`) or through the memory of one machine
(`shared_link`, with `segment`, `ring`, `arena` and `leasing`).
`tcp` connects the processes that a list of addresses names (`authentication`
before anything else), `launch` starts threads and processes and reports the
first cause (`failure`) when one of them stops.
"""
