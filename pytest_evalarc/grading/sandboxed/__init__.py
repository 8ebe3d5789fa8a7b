"""Scripts that run inside the sandbox, beside or around a submission; imported by nothing here.

They are copied to a tools folder and started with `-I -S -B`. What they need of each other they
import from that folder, and then take it off the path again.
"""
