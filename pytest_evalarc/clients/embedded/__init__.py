"""The clients that need no model: oracle, nop and replay."""
