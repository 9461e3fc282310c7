"""Entry point of `python -m crowdveil`."""

from crowdveil.cli.start import start

start()
