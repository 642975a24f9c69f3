"""What every room may use: errors, arguments, registries, strict JSON, optional libraries, the machine."""

__version__ = "0.3.0.dev0"
