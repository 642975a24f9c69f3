"""Reproduce the papers' tables and figures: rows, what each needs, how it is run, and the report of what came out.

Not part of the wheel: `python -m lab` in a checkout, or `scripts/reproduce/*.sh` from anywhere.
"""
