"""Files of comparisons into values, and rankings into files."""
