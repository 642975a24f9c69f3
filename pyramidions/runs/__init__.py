"""Runs and what they cost: training, recipes, counted cost, timing and curves."""
