"""Pictures of the documents that a program draws from the samples."""

from tools.consensus_picture import PICTURE, SAMPLE, drawn

from crowdveil import Reports


def test_picture_of_the_consensus_is_that_of_the_sample() -> None:
    """The committed picture holds the answers of the sample, their votes and the truths that are inferred today."""
    assert PICTURE.read_text("utf-8") == drawn(Reports.from_csv(SAMPLE))
