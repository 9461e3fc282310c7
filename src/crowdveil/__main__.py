"""`python -m crowdveil` is the command `crowdveil`."""

from crowdveil.cli import main

main(prog_name="crowdveil")
