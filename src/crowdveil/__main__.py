"""Entry point of `python -m crowdveil`."""

from crowdveil.cli import start

start()
