"""Replay of bought answers: the choice of `crowdveil next` against uniform buying, on answers that were held out."""
