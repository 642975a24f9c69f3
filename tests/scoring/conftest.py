"""Examples are made up by hypothesis at whatever speed the machine has."""

from hypothesis import settings

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
