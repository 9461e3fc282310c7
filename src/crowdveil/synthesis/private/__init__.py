"""Release with (epsilon, delta)-differential privacy, proven and checked."""
