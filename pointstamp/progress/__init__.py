"""Progress tracking: which times may still come where, as values in and values out.

No thread, socket, clock or log call: given what operators report and what peers
sent, this layer computes what every operator will never see again. The modules
in order of dependency: `timestamp` (times and path summaries), `change_batch`,
`antichain`, `operate` (the protocol), `topology` (the graph and its paths),
`reachability` (the tracker), `subgraph` (a scope as an operator).
"""
