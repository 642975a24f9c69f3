"""The metrics: each is registered in `METRICS` by a module of this folder."""

from importlib import import_module

for _module in ("apes_src", "embeddings", "entailment", "entities", "meteor", "of_words", "pairs", "rouge"):
    import_module(f"{__name__}.{_module}")
