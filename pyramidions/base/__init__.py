"""What every room may use: errors, arguments, registries, strict JSON, optional libraries, devices."""

__version__ = "0.3.0"
