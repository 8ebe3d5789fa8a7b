"""One HTML page for people: results read with care, told plainly, opened without a network."""
