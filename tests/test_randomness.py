"""Where random numbers come from."""

import numpy as np
import pytest

from crowdveil.randomness import WORD_BITS, WORD_BYTES, secure, seeded
from tests.chi_square import chi_square_p_value


@pytest.mark.parametrize("count", [0, 1, 7])
def test_secure_reads_exactly_six_bytes_per_word(monkeypatch, count):
    """One read of 6 bytes per word, no more and no less."""
    read: list[int] = []
    monkeypatch.setattr("os.urandom", lambda size: read.append(size) or bytes(size))

    words = secure().words(count)

    assert [WORD_BYTES * count] == read
    assert [0] * count == words.tolist()


def test_secure_words_are_little_endian(monkeypatch):
    """The first byte is the least significant, the last one the most significant."""
    monkeypatch.setattr("os.urandom", lambda size: bytes([1, 0, 0, 0, 0, 0] + [255] * 6))

    assert [1, 2**WORD_BITS - 1] == secure().words(2).tolist()


@pytest.mark.parametrize("source", [secure(), seeded(11)], ids=["secure", "seeded"])
def test_words_are_uniform_in_their_first_and_last_bits(source):
    """Chi-square on the top and on the bottom 4 bits, n = 50,000 words; false alarm 1e-9 each (secure has no seed)."""
    words = source.words(50_000)

    for nibble in (words >> np.uint64(WORD_BITS - 4), words & np.uint64(15)):
        assert chi_square_p_value(np.bincount(nibble.astype(int), minlength=16), np.full(16, 1 / 16)) > 1e-9


def test_words_fit_in_48_bits():
    """No word reaches the denominator."""
    assert int(seeded(3).words(10_000).max()) < 2**WORD_BITS


def test_equal_seeds_give_equal_words():
    """A seed reproduces its stream; another seed gives another one."""
    assert seeded(5).words(9).tolist() == seeded(5).words(9).tolist()
    assert seeded(5).words(9).tolist() != seeded(6).words(9).tolist()


def test_only_a_seed_makes_a_simulation():
    """A source says whether it protects anybody."""
    assert (False, True) == (secure().simulation, seeded(0).simulation)


def test_secure_never_repeats():
    """Two reads differ; false alarm 2**-480."""
    assert secure().words(10).tolist() != secure().words(10).tolist()
