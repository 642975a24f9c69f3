"""ROUGE, and what makes it comparable; `import pyramidions` registers the scorer that fairseq-generate uses."""
