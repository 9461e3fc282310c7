"""Hypothesis profiles: in continuous integration the same examples on every run; no deadlines on shared machines."""

import os

from hypothesis import settings

settings.register_profile("local", deadline=None, max_examples=50)
settings.register_profile("ci", deadline=None, max_examples=50, derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "local")
