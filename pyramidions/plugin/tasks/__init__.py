"""Tasks that fairseq trains and generates for; `pyramidions.plugin` registers them."""
