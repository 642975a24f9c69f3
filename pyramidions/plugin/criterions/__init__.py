"""Criterions that fairseq trains with; `pyramidions.plugin` registers them."""
