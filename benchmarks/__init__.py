"""Benchmarks against peers and against the machine: `python -m benchmarks --help`."""
