"""robot-evidence-review: a report on a recorded flight, with its units, clock, gaps and origin."""
