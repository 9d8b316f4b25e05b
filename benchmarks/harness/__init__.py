"""Runs benchmarks and writes down what came out, with what it takes to judge it."""
