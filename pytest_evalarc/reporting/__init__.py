"""From results to documents: whatever can be computed is computed in counting."""
