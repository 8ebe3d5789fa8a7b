"""Policy to argv by a sandbox, and the one place where processes start and end.

Here live the sandboxes, their preflight, limits, supervision and the sweep of what is left.
Here never: what a process is for, whether an agent, a check or a candidate.
"""
