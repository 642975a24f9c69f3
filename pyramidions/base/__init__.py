"""What every room may use: errors, arguments, registries, strict JSON, optional libraries, the machine."""
