"""Scripts that build and test a Rust submission inside a sandbox; nothing here is imported by us.

They run beside the record channel of the folder above, as scripts of a bare interpreter.
"""
