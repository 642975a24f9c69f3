"""`python -m pyramidions`, the command line."""

from pyramidions.cli import main

main(prog_name="pyramidions")
