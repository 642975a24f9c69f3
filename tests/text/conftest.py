"""Gives tests with generated texts the time that a loaded machine needs."""

from hypothesis import settings

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
