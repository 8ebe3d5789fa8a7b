"""A folder becomes a valid task, or every problem in it is told at once.

Here live the keys of task.toml, check files, mutants, fixtures and what each must hold.
Here never: a process, or anything that depends on a run.
"""
