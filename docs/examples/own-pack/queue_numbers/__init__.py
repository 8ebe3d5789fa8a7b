"""A pack of one's own: a program that hands out numbers, and must not hand one out twice."""
