"""Frozen schemas of everything that crosses a file or process boundary.

Here live the documents, their parts, and what is true of each by itself.
Here never: reading, writing, or a number that follows from other ones.
"""
