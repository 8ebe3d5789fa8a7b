"""A folder becomes a valid task, or every problem in it is told at once."""
