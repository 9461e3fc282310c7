"""Agreement of workers: alpha, corrected for a channel, kappa, and agreement beyond what a model explains."""
