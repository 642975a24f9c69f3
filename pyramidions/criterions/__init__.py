"""Criterions that fairseq trains with; `import pyramidions` registers them."""
