"""Hints name arguments as their reader writes them, and none that the reader does not have."""

import subprocess
import sys
import threading
from contextvars import copy_context
from typing import Any

import click
import pytest
from click.testing import CliRunner

from crowdveil import Categories, Reports, Scale
from crowdveil.cli import main
from crowdveil.cli.named_options import option_naming
from crowdveil.errors import ReportsError
from crowdveil.hints import advice, advising_own_arguments, arguments_named_by, command_advice, one_of

COMMAND = click.Command(
    "read",
    params=[
        click.Option(["--labels"]),
        click.Option(["--scale"]),
        click.Option(["--ordered"], is_flag=True),
        click.Option(["-q", "--question"]),
        click.Option(["--accept-edited"], is_flag=True),
        click.Option(["--answers", "most_answers"]),
        click.Option(["--task-column"]),
        click.Argument(["source"]),
    ],
)
REPEATED = {"task": [1, 1], "worker": ["a", "a"], "label": ["no", "yes"]}


def on_command_line(template: str, otherwise: str = "", **values: Any) -> str:
    """Advice as the command `read` prints it."""
    with arguments_named_by(option_naming(COMMAND)):
        return advice(template, otherwise, **values)


@advising_own_arguments
def own(delimiter: str = ",", **more: Any) -> tuple[str, str]:
    """Advice on an argument of this function, and on one of no function."""
    return advice("Give {delimiter}."), advice("Give {quote}.", "Look at it.")


@advising_own_arguments
def strict(delimiter: str = ",") -> tuple[str, str, tuple[str, str]]:
    """Advice on an argument of this function, on another one, and that of a function that it calls."""
    return advice("Give {delimiter}."), advice("Give {quote}.", "Look at it."), own()


@pytest.mark.parametrize(
    ("template", "values", "python", "option"),
    [
        ("Add {accept_edited}.", {"accept_edited": True}, "Add accept_edited=True.", "Add --accept-edited."),
        ("Give {question}.", {"question": "a b"}, "Give question='a b'.", "Give --question 'a b'."),
        ("Leave {question} out.", {}, "Leave question out.", "Leave --question out."),
        ("Give {answers}.", {"answers": 3}, "Give answers=3.", "Give --answers 3."),
        ("Give {most_answers}.", {"most_answers": 3}, "Give most_answers=3.", "Give --answers 3."),
        ("State {task}.", {"task": "id"}, "State task='id'.", "State --task-column id."),
        ("Give {alphabet}.", {}, "Give alphabet.", "Give --labels or --scale."),
        ("Give {alphabet}.", {"alphabet": Scale(0, 4, 2)}, None, "Give --scale 0:4:2."),
        (
            "Give {alphabet}.",
            {"alphabet": Categories(("no", "yes"), ordered=True)},
            None,
            "Give --labels no,yes --order",
        ),
        ("Nothing is named.", {}, "Nothing is named.", "Nothing is named."),
    ],
)
def test_an_argument_is_named_for_its_reader(
    template: str, values: dict[str, Any], python: str | None, option: str
) -> None:
    """Advice reads as a call in Python and as an option in a command, whose option may have another name."""
    assert advice(template, **values) == (python or f"Give alphabet={values.get('alphabet')!r}.")
    assert on_command_line(template, **values).startswith(option)


def test_a_command_is_offered_only_its_own_options() -> None:
    """Advice on an option that the command lacks is dropped or replaced; an argument by place is no option."""
    assert "" == on_command_line("Give {delimiter}.")
    assert "Look at it." == on_command_line("Give {question} and {source}.", "Look at it.")


def test_a_function_is_offered_only_its_own_arguments() -> None:
    """The outermost function counts; one with free arguments accepts any name."""
    assert ("Give delimiter.", "Give quote.") == own()
    assert ("Give delimiter.", "Look at it.", ("Give delimiter.", "Look at it.")) == strict()


def test_advice_on_an_option_without_an_argument_is_for_commands_only() -> None:
    """In Python the other text stands; a command that has the option names it."""
    with arguments_named_by(option_naming(COMMAND)):
        assert "Give --question." == command_advice("Give {question}.", "Look.")

    assert "Look." == command_advice("Give {question}.", "Look.")


def test_values_of_users_are_not_interpreted() -> None:
    """A value that looks like an argument in braces, or like an option, stays as it is."""
    assert "Give question='{out} --out'." == advice("Give {question}.", question="{out} --out")
    assert "Give --question '{out} --out'." == on_command_line("Give {question}.", question="{out} --out")


def test_alternatives_are_one_sentence() -> None:
    """Alternatives that do not apply leave no trace."""
    assert "Correct it, leave it out, or skip it." == one_of("correct it", "", "leave it out", "skip it")
    assert "Correct it." == one_of("", "correct it")


def test_a_thread_with_the_context_names_the_same_arguments() -> None:
    """Advice that is written in a thread of a command names its options."""
    found = list[str]()
    with arguments_named_by(option_naming(COMMAND)):
        thread = threading.Thread(target=copy_context().run, args=(lambda: found.append(advice("{question}")),))
        thread.start()
        thread.join()

    assert found == ["--question"]


def test_readers_in_python_and_commands_name_their_own(tmp_path: Any) -> None:
    """Repeated answers: a frame is read with another argument; `review`, which cannot, offers no option."""
    (tmp_path / "labels.csv").write_text("task,worker,label\n1,a,no\n1,a,yes\n", "utf-8")
    with pytest.raises(ReportsError, match="choose duplicates='first'"):
        Reports.from_frame(REPEATED)

    result = CliRunner().invoke(main, ["share", str(tmp_path / "labels.csv")])
    assert result.exit_code == 1
    assert "choose --duplicates first" in result.output
    assert "duplicates=" not in result.output


def test_a_public_function_keeps_its_name_and_signature() -> None:
    """A function that advises on its own arguments is shown by `help` as it was written."""
    assert Reports.from_csv.__name__ == "from_csv"
    assert "duplicates" in str(__import__("inspect").signature(Reports.from_csv))


def test_hints_load_the_standard_library_only() -> None:
    """A worker's device loads hints with its errors."""
    program = "import sys, crowdveil.hints; print('numpy' in sys.modules, 'click' in sys.modules)"

    assert b"False False" in subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout
