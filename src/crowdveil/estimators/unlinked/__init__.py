"""Estimators for reports that cannot be linked to workers: the crowd is one mixture, and worker ids are not read."""
