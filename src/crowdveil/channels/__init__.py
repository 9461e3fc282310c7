"""Values and channels on both sides: alphabets, guarantees, exact integer channels and their certificates."""
