"""Tests of the one-file device."""
