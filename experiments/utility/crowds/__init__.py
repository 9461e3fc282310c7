"""Who can take the default over: simulated crowds with a minority of bad workers, and crowds of honest work."""
