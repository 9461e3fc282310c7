"""Exhibits of Huai et al. (2019), "Privacy-aware synthesizing for crowdsourced data"."""
