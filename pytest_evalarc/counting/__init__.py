"""Every derived number, as pure functions of rows and results.

Here live rates, intervals, verdicts, scores, margins, gates and recounts.
Here never: a file, a clock, a process, or a number that is rounded before it is shown.
"""
