"""From results to documents, pages and exports.

Here live benchmarks, audits, comparisons, the page, exports, imports, merging and verifying.
Here never: a number; whatever can be computed is computed in counting.
"""
