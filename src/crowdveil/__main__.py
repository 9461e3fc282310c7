"""`python -m crowdveil` is the command `crowdveil`."""

from crowdveil.cli.start import start

start()
