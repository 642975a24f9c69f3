"""Runs and what they cost: training, recipes and counted cost."""
