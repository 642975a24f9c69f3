"""Reproduces the papers' tables and figures; not part of the wheel: `python -m lab`, or `scripts/reproduce/*.sh`."""
