"""Rankings from comparisons: counting, Bradley-Terry, Davidson, and Davidson with a slope, side and ties by worker."""
