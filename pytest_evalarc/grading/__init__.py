"""From a kept submission to its row of outcomes, by whatever toolchain or pack judges it."""
