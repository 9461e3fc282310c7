"""Algorithm 1 of Huai et al. (2019) as published, and its privacy accounting."""
