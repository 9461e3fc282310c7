"""Tests of shares, one module for each module of crowdveil.quality.shares."""
