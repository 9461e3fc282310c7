"""The exceptions: rule, value and way out in the text, the numbers on the object."""

import pickle
from functools import partial

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
    RowSource,
    SettingsError,
    memory_shortage_error,
    numpy_scalars_to_python,
    place_of_lines,
)

SETTINGS = SettingsError("epsilon must be positive", value=-1, hint="Use 1.")
REPORTS = ReportsError("ids are needed", source="a.csv", rows=(2, 5), examples="'', ''", hint="Fill them.")
CERTIFICATE = CertificateError("row sum", "row 2 sums to 5.", hint="Sum.")
NO_MINIMISER = NoMinimiserError(answers=3, dimensions=5)


@pytest.mark.parametrize(
    ("error", "text", "parts"),
    [
        (SETTINGS, "epsilon must be positive, got -1. Use 1.", {"rule": "epsilon must be positive", "value": -1}),
        (SettingsError("epsilon must be positive", value="x"), "epsilon must be positive, got 'x'.", {"hint": ""}),
        (CERTIFICATE, "Certificate refused (row sum): row 2 sums to 5. Sum.", {"defect": "row sum"}),
        (REPORTS, "a.csv, row 2, 5: ids are needed. Found: '', ''. Fill them.", {"source": "a.csv", "rows": (2, 5)}),
        (ReportsError("ids are needed"), "data: ids are needed.", {"value": None}),
        (NO_MINIMISER, None, {"answers": 3, "dimensions": 5}),
    ],
)
def test_an_error_has_its_parts_in_its_text(error, text, parts):
    """The message leads from the file or value to the way out, and the object carries the parts."""
    assert isinstance(error, CrowdveilError)
    assert text is None or text == str(error)
    assert parts == {name: getattr(error, name) for name in parts}


@pytest.mark.parametrize(
    "error",
    [
        *(SETTINGS, CERTIFICATE, REPORTS, NO_MINIMISER),
        CampaignError("hash", "another campaign."),
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
    shortage = memory_shortage_error(error)

    assert isinstance(shortage, MemoryShortageError)
    assert found in str(shortage.value)
    assert str(shortage).startswith(
        f"the work must fit into memory, but the operating system reported: {shortage.value}. Raise"
    )


@pytest.mark.parametrize("error", [RuntimeError("another"), ImportError("no module"), OSError(2, "No such file")])
def test_other_errors_are_no_lack_of_memory(error):
    """What is no lack of memory stays what it is."""
    assert memory_shortage_error(error) is None


def test_messages_show_numbers_and_texts_of_numpy_as_they_were_given():
    """Scalars of numpy are shown as Python's own, in lists and tuples too; arrays and others stay as they are."""
    value = (np.float64(0.5), [np.str_("a"), np.int64(2)])
    array = np.arange(2)

    assert "rule, got (0.5, ['a', 2])." == str(SettingsError("rule", value=value))
    assert (0.5, ["a", 2]) == SettingsError("rule", value=value).value
    assert array is numpy_scalars_to_python(array)
    assert "x" == numpy_scalars_to_python("x")


def test_the_name_of_a_text_file_keeps_its_lines_through_pickling():
    """Errors of other processes name lines, too."""
    again = pickle.loads(pickle.dumps(RowSource("a.csv", partial(place_of_lines, "a.csv"))))

    assert ("a.csv", "a.csv, lines 1, 2") == (again, again.place((1, 2)))
