"""Foreign models: their families, files, tokenizers and weights in our terms."""
