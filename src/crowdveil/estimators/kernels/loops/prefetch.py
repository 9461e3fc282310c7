"""Rows of workers are read at random, and what misses a core's own caches takes a hundred times as long as what does
not: lines that will be read soon are asked for, so that they are under way while other lines are worked on."""

from crowdveil.compiling.memory import ask_for as ask_for

AHEAD = 128
"""Reports from the one whose row is asked for to the one that is added up."""
