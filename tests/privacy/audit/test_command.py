"""Whole commands as black boxes: every byte that they leave, on neighbouring inputs."""

import contextlib
import io
import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import crowdveil.storage.synthesis
from crowdveil.cli import main
from crowdveil.errors import SettingsError
from crowdveil.privacy.audit.black_box import BlackBoxAudit, audit_black_box
from crowdveil.privacy.audit.command import CommandBox, run_process
from crowdveil.synthesis.expected_error import ReleaseErrors
from tests.campaign.builders import build_campaign

pytestmark = pytest.mark.slow

DRAWS = 40
"""Draws of each input: few, but a command that shows its input has bound 0.66."""
CLAIM = 0.5

HEAD = "task,worker,label\n"
FULL, OTHER, LESS = HEAD + "t1,w1,yes\nt2,w1,no\n", HEAD + "t1,w1,no\nt2,w1,no\n", HEAD + "t2,w1,no\n"
MECHANISM = ["--mechanism", "{}", "--epsilon", "0.5", "--labels", "no,yes", "--ordered"]
LISTS = ("--tasks", "tasks.csv", "--workers", "workers.csv")
NUMBERS = "task,worker,value\n" + "".join(f"t1,w{n},{40 + n}\n" for n in range(9))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder with the public lists and three files of answers."""
    monkeypatch.chdir(tmp_path)
    files = {"full.csv": FULL, "other.csv": OTHER, "less.csv": LESS, "tasks.csv": "task\nt1\nt2\n"}
    files |= {"workers.csv": "worker\nw1\nw2\n", "numbers.csv": NUMBERS, "moved.csv": NUMBERS.replace(",40\n", ",90\n")}
    for name, text in files.items():
        Path(name).write_text(text)
    return tmp_path


def in_process(words):
    """Run crowdveil in this process; return exit code, stdout and stderr."""
    result = CliRunner().invoke(main, list(words[1:]))
    return result.exit_code, result.stdout_bytes, result.stderr_bytes


def audit(words, *pairs, run=in_process, epsilon=CLAIM) -> BlackBoxAudit:
    """Return the audit of a command on pairs of files."""
    work = Path("work").absolute()
    work.mkdir(exist_ok=True)
    box = CommandBox((tuple(words),), work, run)
    return audit_black_box(
        [box.pair_of_inputs(Path(one), Path(two)) for one, two in pairs], epsilon=epsilon, draws=DRAWS
    )


@pytest.mark.parametrize("mechanism", ["randomized-response", "sun-two-layer"])
def test_perturb_keeps_its_claim(mechanism):
    """Reports, certificate, crowd, record and printed text, for an answer and a missing one."""
    words = ["crowdveil", "perturb", "{input}", "--out", "{out}", *LISTS]
    words += [word.format(mechanism) for word in MECHANISM]

    assert not audit(words, ("other.csv", "less.csv")).refuted


def test_sums_of_matrix_factorization_keep_their_claim():
    """Files without single reports."""
    words = ["crowdveil", "perturb", "{input}", "--out", "{out}", *LISTS, "--scale", "0:100", "--epsilon", "0.5"]
    numbers = "task,worker,value\nt1,w1,{}\n"
    Path("low.csv").write_text(numbers.format(0))
    Path("high.csv").write_text(numbers.format(100))

    assert not audit([*words, "--mechanism", "matrix-factorization"], ("low.csv", "high.csv")).refuted


def test_private_synthesis_keeps_its_claim(monkeypatch):
    """Synthetic claims, guarantee and printed text, for one claim moved from 40 to 90.

    The expected error is left out: it takes fifty releases of simulated claims, from public numbers.
    """
    monkeypatch.setattr(
        crowdveil.storage.synthesis, "expected_errors_of_release", lambda *_, **__: ReleaseErrors(None, None)
    )
    words = [
        "crowdveil",
        "data",
        "synthesize",
        "{input}",
        "--method",
        "histogram",
        "--epsilon",
        "0.5",
        "--bounds",
        "0:100",
    ]

    assert not audit([*words, "--records", "3", "--out", "{out}"], ("numbers.csv", "moved.csv")).refuted


def test_a_device_keeps_the_claim_of_its_campaign():
    """The report file of a worker who answers a task or leaves it out; each run is another device."""
    built = build_campaign(url=None, slots=2, tasks=2)
    built.write(Path("asked"))
    for name, rows in (("both.csv", "t0,zebrafish\nt1,narwhal\n"), ("one.csv", "t1,narwhal\n")):
        Path(name).write_text("task,label\n" + rows)
    words = [
        "crowdveil",
        "campaign",
        "answer",
        built.link(0).text,
        "--answers",
        "{input}",
        "--files",
        "asked",
        "--home",
        "home",
    ]

    def new_device(given):
        shutil.rmtree("home", ignore_errors=True)
        return in_process(given)[0], b"", b""  # the terminal is the worker's own

    result = audit([*words, "--out", "{out}"], ("both.csv", "one.csv"), run=new_device, epsilon=1.0)

    assert not result.refuted


def test_a_worker_list_taken_from_the_answers_is_refuted():
    """The files name the workers who answered; the draws are those of the commands that keep their claim."""
    Path("nobody.csv").write_text(HEAD + "t1,w2,no\n")
    Path("both.csv").write_text(HEAD + "t1,w2,no\nt1,w1,no\n")
    words = ["crowdveil", "perturb", "{input}", "--out", "{out}", "--lists-from-answers"]
    words += [word.format("randomized-response") for word in MECHANISM]

    assert audit(words, ("both.csv", "nobody.csv")).refuted


PROGRAM = """
import pathlib, sys
text, out = pathlib.Path(sys.argv[1]).read_text(), pathlib.Path(sys.argv[2])
out.mkdir()
{}
"""


@pytest.mark.parametrize(
    "leak",
    [
        "sys.exit(text.count('t1'))",
        "print(len(text))",
        "print(len(text), file=sys.stderr)",
        "(out / f'{len(text)}.txt').write_text('')",
        "(out / 'a.txt').write_text('x' * len(text))",
        "(out / 'a.txt').write_text('a b' if 't1' in text else 'b a')",
        "(out / str(len(text))).mkdir()",
        "(out.parent / f'{len(text)}.tmp').write_text('')",
        "(out / 'a.txt').touch(); (out / 'a.txt').chmod(0o600 if 't1' in text else 0o400)",
        "(out / 'a.txt').symlink_to('x' if 't1' in text else 'y')",
        "(out.parent / 'a').symlink_to(out if 't1' in text else out.parent)",
        "(out / 'a').touch(); (out / 'b').hardlink_to(out / 'a') if 't1' in text else (out / 'b').touch()",
        "pathlib.Path(sys.argv[1]).write_text('read' if 't1' in text else text)",
    ],
)
def test_every_trace_is_an_event(leak):
    """Exit code, both streams, names, sizes, order, modes and links of files, empty folders, a changed input."""
    Path("program.py").write_text(PROGRAM.format(leak))

    result = audit(["python", "program.py", "{input}", "{out}"], ("full.csv", "less.csv"), run=python_run)

    assert result.refuted


def test_commands_run_in_turn():
    """The second command reads what the first one wrote; its output is compared."""
    Path("copy.py").write_text("import shutil, sys\nshutil.copyfile(*sys.argv[1:])\n")
    Path("show.py").write_text("import pathlib, sys\nprint(pathlib.Path(sys.argv[1]).read_text())\n")
    work = Path("work").absolute()
    work.mkdir()
    box = CommandBox((("python", "copy.py", "{input}", "{out}"), ("python", "show.py", "{out}")), work, python_run)

    output = box.pair_of_inputs(Path("full.csv"), Path("less.csv")).first(1)[0]

    assert (b"", FULL + "\n") == (output["stdout"], output["stdout of command 2"].decode())
    assert FULL.encode() == output["file out"]


def python_run(words):
    """Run a small Python program in this process; return exit code, stdout and stderr."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    before = sys.argv
    sys.argv = list(words[1:])
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            exec(Path(words[1]).read_text(), {})
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.argv = before
    return code, out.getvalue().encode(), err.getvalue().encode()


def test_a_real_program_runs():
    """Without another runner the words are a program of the system."""
    box = CommandBox(((sys.executable, "-c", "print(open(r'{input}').read())"),), Path.cwd() / "work")
    (Path.cwd() / "work").mkdir()

    output = box.pair_of_inputs(Path("full.csv"), Path("less.csv")).first(1)[0]

    assert (0, FULL) == (output["exit code"], output["stdout"].decode().replace("\r\n", "\n").rstrip("\n") + "\n")


def test_a_command_that_always_fails_is_no_audit():
    """A refusal on every draw compares nothing."""
    with pytest.raises(SettingsError, match="every draw failed"):
        audit(["crowdveil", "perturb", "{input}", "--out", "{out}"], ("full.csv", "less.csv"))


@pytest.mark.parametrize(
    ("words", "inputs", "rule"),
    [
        (("cat", "full.csv"), ("full.csv", "less.csv"), "must contain"),
        ((), ("full.csv", "less.csv"), "none may be empty"),
        (("cat", "{input}"), ("full.csv", "none.csv"), "an input must exist"),
        (("cat", "{input}"), ("full.csv", "."), "both inputs are files"),
        (("no-such-program", "{input}"), ("full.csv", "less.csv"), "must run"),
    ],
)
def test_impossible_audits_are_refused(words, inputs, rule):
    """A command without input, inputs that are missing or of different kinds, and a program that does not exist."""
    with pytest.raises(SettingsError, match=rule):
        audit(words, inputs, run=run_process)
