"""The console program `pytest-evalarc`.

Here live its commands: each reads documents or folders, calls one floor below, and prints.
Here never: pytest, a rule of evaluation, or a number that another floor has not computed.
"""
