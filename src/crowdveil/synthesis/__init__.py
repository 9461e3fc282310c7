"""Synthetic claims published by a trusted curator who holds the original claims (Huai et al., IJCAI 2019).

Central differential privacy: it protects a publication, while the rest of crowdveil protects each worker's report.
"""
