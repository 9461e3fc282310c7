"""Kernel-density release of Huai et al. (2019), as printed and as corrected."""
