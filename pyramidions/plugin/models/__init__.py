"""Models and architectures as fairseq sees them; `pyramidions.plugin` registers them."""
