"""A stand-in for Symposium's `cargo-agents`, which tests cannot install.

It keeps what is documented of three commands of version 0.4.0: `init`, `hook` and `sync`.
"""
