"""Synthetic crowds released by a trusted curator, who holds the claims themselves (Huai et al., IJCAI 2019).

Unlike everything else in crowdveil, these modes protect a publication, not a report: the curator sees all claims.
"""
