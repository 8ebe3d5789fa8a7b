"""Scripts that run inside a sandbox: standard library alone, imported by nothing."""
