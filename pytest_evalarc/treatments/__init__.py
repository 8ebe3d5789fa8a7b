"""What `with` means: a treatment put in place, and expectations decided from evidence.

Here live skills, plugin and Symposium, the proof that a baseline is clean, and the witness.
Here never: how a client is started, or whether the work that it left is right.
"""
