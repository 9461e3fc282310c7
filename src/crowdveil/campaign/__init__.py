"""Campaigns: the question, the workers' tasks, the channels, and the device; standard library and numpy only."""
