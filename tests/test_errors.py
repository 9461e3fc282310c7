"""The exceptions: rule, value and way out in the text, the numbers on the object."""

import pickle

import numpy as np
import pytest

from crowdveil.errors import (
    CampaignError,
    CertificateError,
    CrowdveilError,
    EngineError,
    MemoryShortageError,
    NoMinimiserError,
    ReportsError,
    SettingsError,
    TextSource,
    memory_shortage,
    to_builtin,
)


def test_settings_error_names_rule_value_and_way_out():
    """The message holds all three, the object carries them."""
    error = SettingsError("epsilon must be positive", value=-1, hint="Use 1.")

    assert "epsilon must be positive, got -1. Use 1." == str(error)
    assert ("epsilon must be positive", -1, "Use 1.") == (error.rule, error.value, error.hint)


def test_settings_error_without_way_out_ends_after_the_value():
    """No way out leaves no blank behind."""
    assert "epsilon must be positive, got 'x'." == str(SettingsError("epsilon must be positive", value="x"))


def test_certificate_error_names_its_defect():
    """The defect is in the text and on the object."""
    error = CertificateError("row sum", "row 2 sums to 5.")

    assert "Certificate refused (row sum): row 2 sums to 5." == str(error)
    assert ("row sum", "row 2 sums to 5.") == (error.defect, error.detail)


def test_reports_error_names_source_rows_examples_and_way_out():
    """The message leads from the file to the way out."""
    error = ReportsError("ids are needed", source="a.csv", rows=(2, 5), examples="'', ''", hint="Fill them.")

    assert "a.csv, row 2, 5: ids are needed. Found: '', ''. Fill them." == str(error)
    assert ("a.csv", (2, 5)) == (error.source, error.rows)


def test_reports_error_without_rows_is_one_clause():
    """Without rows, examples and way out only the rule is left."""
    assert "data: ids are needed." == str(ReportsError("ids are needed"))


def test_no_minimiser_error_carries_its_numbers():
    """The rank and the dimensions are in the text and on the object."""
    error = NoMinimiserError(answers=3, dimensions=5)

    assert (3, 5) == (error.answers, error.dimensions)
    assert "rank 3 < d=5" in str(error)


@pytest.mark.parametrize("kind", [CampaignError, CertificateError, NoMinimiserError, ReportsError, SettingsError])
def test_every_refusal_is_a_crowdveil_error(kind):
    """One except clause catches everything crowdveil refuses."""
    assert issubclass(kind, CrowdveilError)


@pytest.mark.parametrize(
    "error",
    [
        SettingsError("epsilon must be positive", value=-1, hint="Use 1."),
        CampaignError("hash", "another campaign."),
        CertificateError("row sum", "row 2 sums to 5."),
        ReportsError("ids are needed", source="a.csv", rows=(2, 5)),
        NoMinimiserError(answers=3, dimensions=5),
        EngineError("Workers died", hint="Use fewer."),
    ],
    ids=lambda error: type(error).__name__,
)
def test_refusals_travel_between_processes(error):
    """Pickled and read again, an error has its class, its message and its numbers."""
    again = pickle.loads(pickle.dumps(error))

    assert type(error) is type(again)
    assert str(error) == str(again)
    assert vars(error) == vars(again)


@pytest.mark.parametrize(
    ("error", "found"),
    [
        (MemoryError("malloc of size 8 failed."), "malloc of size 8 failed"),
        (MemoryError(), "out of memory"),
        (RuntimeError("can't start new thread"), "can't start new thread"),
        (ImportError("x.so: failed to map segment from shared object"), "x.so: failed to map segment"),
        (OSError(12, "Cannot allocate memory"), "Cannot allocate memory"),
    ],
)
def test_a_lack_of_memory_is_known_by_what_errors_say(error, found):
    """Memory errors, and errors of threads and libraries that found no address space, are one error with a way out."""
    shortage = memory_shortage(error)

    assert isinstance(shortage, MemoryShortageError)
    assert found in shortage.value
    assert str(shortage).startswith(
        f"the work must fit into memory, but the operating system reported: {shortage.value}. Raise"
    )


@pytest.mark.parametrize("error", [RuntimeError("another"), ImportError("no module"), OSError(2, "No such file")])
def test_other_errors_are_no_lack_of_memory(error):
    """What is no lack of memory stays what it is."""
    assert memory_shortage(error) is None


def test_messages_show_numbers_and_texts_of_numpy_as_they_were_given():
    """Scalars of numpy are shown as Python's own, in lists and tuples too; arrays and others stay as they are."""
    value = (np.float64(0.5), [np.str_("a"), np.int64(2)])
    array = np.arange(2)

    assert "rule, got (0.5, ['a', 2])." == str(SettingsError("rule", value=value))
    assert (0.5, ["a", 2]) == SettingsError("rule", value=value).value
    assert array is to_builtin(array)
    assert "x" == to_builtin("x")


def test_the_name_of_a_text_file_keeps_its_lines_through_pickling():
    """Errors of other processes name lines, too."""
    again = pickle.loads(pickle.dumps(TextSource("a.csv", tuple)))

    assert ("a.csv", (1, 2)) == (again, again.lines((1, 2)))
