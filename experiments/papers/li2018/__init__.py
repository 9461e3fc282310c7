"""Exhibits of Li, Miao, Su, Gao, Li, Ding, Qin, Ren: An Efficient Two-Layer Mechanism ..., KDD 2018."""
