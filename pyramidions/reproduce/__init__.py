"""Reproduce the paper's tables and figures: rows, what each needs, how it is run, and the report of what came out."""
