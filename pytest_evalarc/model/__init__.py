"""Frozen schemas of everything that crosses a file or process boundary."""
