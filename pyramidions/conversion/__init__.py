"""Foreign models with other parts, back to transformers, and model cards."""
