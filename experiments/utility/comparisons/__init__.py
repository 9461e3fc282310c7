"""Rankings of simulated crowds that compare items: order, intervals, predictions and noise."""
