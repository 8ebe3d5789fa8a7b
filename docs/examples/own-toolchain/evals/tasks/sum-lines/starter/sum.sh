# Print the sum of the whole numbers on standard input, one on each line.
# A line that is no number ends it with status 2 and no output. No line at all sums up to 0.
