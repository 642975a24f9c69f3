"""The corpora of the field by name: one description each, and what reads them."""
