"""What is claimed about speed and memory, a file for each claim.

    python -m benchmarks                 all but the long, in an hour on two cores
    python -m benchmarks barrier words   some
    python -m benchmarks --list          which there are
    python -m benchmarks --page          docs/benchmarks.md and its plots again, from results/

A file here has a `BENCHMARK`: what is measured, the cases (ours and the baselines', run
one after the other, each in a process of its own), and what they are compared with.
`harness/` runs them; it knows nothing of what they do.
"""
