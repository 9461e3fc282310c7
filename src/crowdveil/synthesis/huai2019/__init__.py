"""Algorithm 1 of Huai et al. (2019): the paper reproduction, a corrected version, and their privacy accounting."""
