"""Inference time of crowdveil, crowd-kit and plain numpy, measured in turn on one machine."""
