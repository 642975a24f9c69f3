"""Functions without parameters that the parts are made of."""
