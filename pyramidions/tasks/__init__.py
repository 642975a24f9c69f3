"""Tasks that fairseq trains and generates for; `import pyramidions` registers them."""
