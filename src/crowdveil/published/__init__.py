"""Methods as their papers print them, each beside its exact guarantee."""
