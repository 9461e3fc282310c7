"""Confusion matrices of workers behind a channel: model, parameters, hyperpriors and credible intervals."""
