"""Pretrained encoders that metrics are computed with: of token vectors, of answers and of entities."""
