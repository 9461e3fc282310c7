"""Truths from reports: choice of the method, fit, confidence, panels."""
