"""Design of channels, and mechanisms from their settings."""
