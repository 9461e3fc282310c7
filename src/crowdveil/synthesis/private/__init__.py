"""Private releases: pure epsilon-differential privacy, proved and tested."""
