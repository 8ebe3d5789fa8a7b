"""The packs that ship: seeded cases, an oracle on the host, references and declared faults.

Here lives one folder for each pack, which keeps the protocol that grading defines.
Here never: a way of grading of its own, or anything that another pack needs as well.
"""
