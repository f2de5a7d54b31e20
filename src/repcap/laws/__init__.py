"""Laws, proven bounds and explicit constructions: how many near-orthogonal lines fit into R^d.

Floats in, floats out; no torch. See README.md in this directory for which file holds what.
"""
