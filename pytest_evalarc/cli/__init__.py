"""The console program `pytest-evalarc`."""
