"""Everything that can be named, built-in or not: the one floor that knows concrete ones.

Here live the tables of clients, treatments, toolchains, sandboxes and packs, and their lookup.
Here never: how any of them works.
"""
