"""Files as they are: read strictly, listed without following links, written whole.

Here live strict JSON, manifests, trees, locks, atomic writes and what is sent between hosts.
Here never: what a file means, or a process.
"""
