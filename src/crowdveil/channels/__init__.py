"""Alphabets, privacy guarantees, exact integer channels and their certificates, for devices and curators."""
