"""Attacks on the package that count what was tried and what failed: `python -m tests.reliability --help`."""
