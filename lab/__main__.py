"""`python -m lab`."""

from lab.cli import main

main(prog_name="python -m lab")
