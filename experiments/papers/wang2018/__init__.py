"""Exhibits of Wang and Xu, private Dawid-Skene under local attribute differential privacy."""
