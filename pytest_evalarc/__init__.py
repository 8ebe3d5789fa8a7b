"""Evaluate coding agents with pytest, and audit the checks that judge them."""

__version__ = "0.1.0"
