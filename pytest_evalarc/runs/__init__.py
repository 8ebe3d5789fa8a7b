"""Plan, layout on disk, one trial, one control: everything that is produced once and kept.

Here live batches, what makes a result final, budgets, slots, resuming and grading again.
Here never: what a number over trials is, or how it is shown.
"""
