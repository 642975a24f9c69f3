"""A page on this machine that summarizes the document that is dropped on it; needs the extra "serve"."""
