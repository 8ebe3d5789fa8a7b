"""From a kept submission to its row of outcomes, by whatever toolchain or pack judges it.

Here live toolchains, the check channel, labs for files and packs, and the cache of gradings.
Here never: an agent, a treatment, or a count of more than one row.
"""
