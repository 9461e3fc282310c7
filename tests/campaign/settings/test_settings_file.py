"""Settings files of campaigns and their tables: what is read, and each refusal."""

from datetime import date
from hashlib import sha256
from pathlib import Path

import pytest

from crowdveil.campaign.rules.document import Picture, Task
from crowdveil.campaign.settings.public_lists import read_tasks, read_worker_names
from crowdveil.campaign.settings.settings_file import read_settings
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.errors import CrowdveilError, ReportsError, SettingsError

SAMPLES = Path(__file__).parents[3] / "docs" / "samples"
SETTINGS = {
    "title": '"Night shifts"',
    "question": '"How often?"',
    "consent": '"Randomized here."',
    "language": '"de"',
    "open": "{ from = 2027-01-10, until = 2027-01-17 }",
    "min_reports": "2",
    "participation": '"public"',
    "answers": '{ labels = ["never", "monthly", "weekly"], ordered = true }',
    "tasks": '{ file = "tasks.csv" }',
    "workers": "{ count = 3 }",
    "privacy": '{ mechanism = "randomized-response", epsilon_per_answer = 0.7 }',
}

QUANTIZED = '{ mechanism = "quantized-response", epsilon_per_answer = 1, cuts = [%s] }'
LEVELS = '{ mechanism = "randomized-response", levels = %s }'
RELAYED = {
    "participation": '"protected"',
    "service": '{ url = "https://a.org", purge_after_days = 3 }',
    "relay": '{ operator = "The library", least_batch = 2, unit = "cell" }',
}


@pytest.fixture
def write(tmp_path):
    """Write a settings file with changes (None leaves a line out) and the tasks; return its path."""

    def write(table="id,text\na,One?\nb,Two?\n", **changes):
        lines = [f"{key} = {value}" for key, value in {**SETTINGS, **changes}.items() if value is not None]
        (tmp_path / "tasks.csv").write_text(table, "utf-8")
        path = tmp_path / "campaign.toml"
        path.write_text("\n".join(lines), "utf-8")
        return path

    return write


def test_the_sample_is_read():
    """The sample of the documents is a planned peer grading: nobody gets the own essay."""
    source = read_settings(SAMPLES / "campaign.toml")

    assert (12, 24, 2) == (len(source.rows), source.slots, source.per_worker)
    assert Scale(0, 10) == source.alphabet
    assert (*(frozenset({task}) for task in range(12)), *[frozenset()] * 12) == source.excluded
    assert ("https://grades.example.org", 30) == (source.url, source.purge_after_days)
    assert "Your grades are randomized on this device before they are sent.\nThe" in source.consent
    assert "plan" == source.privacy.mechanism
    assert (5.0, None) == (source.privacy.budget_per_worker, source.privacy.epsilon_per_answer)


def test_a_survey_without_a_service_is_read(write):
    """Labels, days, a number of workers and an epsilon per answer are read; what is left out has its default."""
    source = read_settings(write(expected="{ answered = 0.8, ability = 0.6 }", language=None))

    assert Categories(("never", "monthly", "weekly"), ordered=True) == source.alphabet
    assert (date(2027, 1, 10), date(2027, 1, 17)) == (source.opens, source.closes)
    assert (3, (), None, None, "en") == (source.slots, source.names, source.url, source.per_worker, source.language)
    assert 0.7 == source.privacy.epsilon_per_answer
    assert (0.8, 0.6) == (source.expected.answered, source.expected.ability)


def test_excluded_workers_are_slots_where_there_are_no_names(write):
    """Where workers have no names, not_for holds their slots, several separated by semicolons."""
    source = read_settings(write("id,text,not_for\na,One?,0; 2\nb,Two?,\n"))

    assert (frozenset({0}), frozenset(), frozenset({0})) == source.excluded


@pytest.mark.parametrize(
    ("changes", "rule", "hint"),
    [
        ({"title": None}, "title is needed", "first"),
        ({"title": '""'}, "title must be a text", ""),
        ({"title": '"a\\nb"'}, "title must be one line", ""),
        ({"title": f'"{"x" * 201}"'}, "title has at most 200 characters", "Shorten"),
        ({"question": '"a\\u200bb"'}, "question must be printable", "Remove it"),
        ({"consent": "7"}, "consent must be a text", ""),
        ({"language": '"German"'}, "language must be a code", ""),
        ({"titel": '"x"'}, "the file has no setting 'titel'", "Did you mean 'title'?"),
        ({"open": "{ from = 2027-01-10T08:00:00, until = 2027-01-17 }"}, "open.from must be a day", "without a time"),
        ({"open": '{ from = "2027-01-10", until = 2027-01-17 }'}, "open.from must be a day", "quotes"),
        ({"open": "{ from = 2027-01-18, until = 2027-01-17 }"}, "open.until must not be before open.from", ""),
        ({"open": "{ from = 2027-01-10, to = 2027-01-17 }"}, "open.until is needed", "2027"),
        ({"open": "3"}, "open must be a table", ""),
        ({"min_reports": "4"}, "min_reports must be a whole number from 1 to 3", ""),
        ({"min_reports": "1.5"}, "min_reports must be a whole number", ""),
        ({"participation": '"hidden"'}, "participation must be one of protected, public", ""),
        ({"participation": '"publik"'}, "participation must be one of protected, public", "Did you mean 'public'?"),
        (
            {"privacy": '{ mechanism = "plan", budget_per_workers = 5 }'},
            "privacy has no setting 'budget_per_workers'",
            "Did you mean 'budget_per_worker'?",
        ),
        ({"answers": "{}"}, "exactly one is needed: answers.scale or answers.labels", ""),
        ({"answers": '{ labels = ["a"] }'}, "an alphabet needs 2 to", ""),
        ({"answers": '{ labels = ["a", "a"] }'}, "labels must be distinct", ""),
        ({"answers": '{ labels = ["a", "NULL"] }'}, "cannot be labels", "Rename"),
        ({"answers": '{ labels = "a,b" }'}, "answers.labels must be a list", ""),
        ({"answers": '{ labels = ["a", "b"], ordered = 1 }'}, "answers.ordered must be true or false", ""),
        ({"answers": "{ scale = { low = 0, high = 10, step = 3 } }"}, "whole number of steps", ""),
        ({"answers": "{ scale = { low = 0, high = 10 } }"}, "answers.scale.step is needed", ""),
        ({"tasks": '{ file = "none.csv" }'}, "the file must be readable", "No such file"),
        (
            {"tasks": '{ file = "tasks.csv", per_worker = 3 }'},
            "tasks.per_worker must be a whole number from 1 to 2",
            "",
        ),
        ({"tasks": '{ file = "tasks.csv", each = 3 }'}, "tasks has no setting 'each'", "Known: "),
        ({"workers": "{ count = 0 }"}, "workers.count must be a whole number from 1", ""),
        ({"workers": '{ count = 3, names = "staff.csv" }'}, "exactly one is needed: workers.count or", ""),
        ({"privacy": '{ mechanism = "none", epsilon_per_answer = 1 }'}, "privacy.mechanism must be one of", ""),
        ({"privacy": '{ mechanism = "laplace" }'}, "exactly one is needed: privacy.budget_per_worker or", ""),
        ({"privacy": '{ mechanism = "laplace", epsilon_per_answer = 0 }'}, "must be above 0", ""),
        ({"privacy": '{ mechanism = "laplace", epsilon_per_answer = "1" }'}, "must be a number", ""),
        ({"privacy": '{ mechanism = "laplace", epsilon_per_answer = 1, cuts = [1] }'}, "no setting 'cuts'", "Known"),
        ({"privacy": '{ mechanism = "laplace", epsilon_per_answer = 1, prior = "p.csv" }'}, "no setting 'prior'", ""),
        ({"privacy": QUANTIZED % '"weekly", "monthly"'}, "privacy.cuts must ascend", "the first block needs none"),
        ({"privacy": QUANTIZED % '"never"'}, "privacy.cuts must ascend, after the first label", ""),
        ({"privacy": QUANTIZED % '"weekly", "weekly"'}, "privacy.cuts must ascend", ""),
        ({"privacy": QUANTIZED % '"daily"'}, "privacy.cuts must be labels of the answers", "first of a block"),
        ({"privacy": QUANTIZED % "1"}, "privacy.cuts must be labels of the answers", ""),
        ({"privacy": QUANTIZED % ""}, "privacy.cuts must be a list of labels", "Example"),
        (
            {"privacy": QUANTIZED % '"b"', "answers": '{ labels = ["a", "b"] }'},
            "privacy.cuts need numbers or ordered labels",
            "Declare",
        ),
        (
            {"privacy": QUANTIZED % "3, 11", "answers": "{ scale = { low = 0, high = 10, step = 1 } }"},
            "privacy.cuts must be labels of the answers",
            "",
        ),
        ({"privacy": QUANTIZED % '["monthly"], ["monthly"]'}, "privacy.cuts of groups must differ", ""),
        ({"privacy": QUANTIZED % '["monthly"], "weekly"'}, "privacy.cuts must be a list of labels", ""),
        ({"privacy": QUANTIZED % '["monthly"], []'}, "privacy.cuts must be a list of labels", ""),
        ({"privacy": LEVELS % "1"}, "privacy.levels must be a list of 2 to 4 numbers", "Example: [1, 2, 4]"),
        ({"privacy": LEVELS % "[1]"}, "privacy.levels must be a list of 2 to 4 numbers", ""),
        ({"privacy": LEVELS % "[1, 2, 3, 4, 5]"}, "privacy.levels must be a list of 2 to 4 numbers", ""),
        ({"privacy": LEVELS % "[1, true]"}, "privacy.levels must be a list of 2 to 4 numbers", ""),
        ({"privacy": LEVELS % '[1, "2"]'}, "privacy.levels must be a list of 2 to 4 numbers", ""),
        ({"privacy": LEVELS % "[2, 1]"}, "privacy.levels must ascend", "the first is preselected"),
        ({"privacy": LEVELS % "[1, 1.0]"}, "privacy.levels must ascend", ""),
        ({"privacy": LEVELS % "[0, 1]"}, "privacy.levels must ascend, above 0", ""),
        ({"privacy": LEVELS % "[1, nan]"}, "privacy.levels must ascend", ""),
        ({"privacy": LEVELS % "[1, 1001]"}, "privacy.levels must ascend, above 0 and up to 1000", ""),
        ({"privacy": LEVELS % "[1, 2], budget_per_worker = 2"}, "exactly one is needed: privacy.levels or", ""),
        (
            {"privacy": LEVELS % "[1, 2]", "participation": '"public"'},
            'with levels participation must be "protected"',
            "",
        ),
        ({"privacy": LEVELS % "[1, 2]", **RELAYED}, "with a relay every worker has the same channel", "equal channels"),
        (
            {"privacy": QUANTIZED % '["monthly"], ["weekly"], ["monthly", "weekly"]', "workers": "{ count = 2 }"},
            "each group of cuts needs a worker",
            "",
        ),
        ({"service": '{ url = "http://example.org" }'}, "service.url must be an https address", "127.0.0.1"),
        ({"service": "{ purge_after_days = 3 }"}, "service.url is needed", "without a server"),
        ({"service": '{ url = "https://a.org", purge_after_days = -1 }'}, "service.purge_after_days must be", ""),
        ({"expected": "{ answered = 1.5 }"}, "expected.answered must be", ""),
        ({"expected": "{ sigmas = 1 }"}, "expected.sigmas must be a list", ""),
    ],
)
def test_a_wrong_setting_is_refused(write, changes, rule, hint):
    """Each wrong setting is refused with its rule, and a hint where the rule does not say what to do."""
    with pytest.raises(CrowdveilError) as caught:
        read_settings(write(**changes))

    assert rule in caught.value.rule
    assert hint in caught.value.hint


def test_cuts_are_labels_or_numbers_of_the_scale(write):
    """Cuts are read as codes, from names of ordered labels, and on a scale from numbers as well."""
    scale = "{ scale = { low = 0, high = 2, step = 0.5 } }"

    assert (1, 2) == read_settings(write(privacy=QUANTIZED % '"monthly", "weekly"')).privacy.cuts
    assert (1, 2, 4) == read_settings(write(answers=scale, privacy=QUANTIZED % '0.5, "1", 2')).privacy.cuts


def test_groups_of_cuts_are_read(write):
    """A list of lists of cuts is one list for each group of workers, and a single one is no group."""
    one = read_settings(write(privacy=QUANTIZED % '["monthly"]')).privacy
    two = read_settings(write(privacy=QUANTIZED % '["monthly"], ["weekly"]')).privacy

    assert ((1,), ()) == (one.cuts, one.dealt_cuts)
    assert ((1,), ((1,), (2,))) == (two.cuts, two.dealt_cuts)
    assert [(1,), (2,)] == [request.cuts for request in two.one_request_per_channel]


def test_levels_are_budgets_of_a_worker(write):
    """Each level is the budget of one request; the least one is planned for."""
    privacy = read_settings(write(privacy=LEVELS % "[1, 2.5, 4]", participation='"protected"')).privacy

    assert ((1.0, 2.5, 4.0), 1.0) == (privacy.levels, privacy.budget_per_worker)
    assert [1.0, 2.5, 4.0] == [request.budget_per_worker for request in privacy.one_request_per_channel]


def test_a_prior_is_a_file_beside_the_settings(write):
    """A designed channel has its prior from a file that is named relative to the settings."""
    path = write(privacy='{ mechanism = "designed", epsilon_per_answer = 1, prior = "prior.csv" }')

    assert path.parent / "prior.csv" == read_settings(path).privacy.prior


@pytest.mark.parametrize("data", [b"title = ", b"\xff", b"x = 1\nx = 2"])
def test_a_file_that_is_no_toml_is_refused(tmp_path, data):
    """Damaged TOML, another encoding and a repeated key are refused."""
    path = tmp_path / "campaign.toml"
    path.write_bytes(data)
    with pytest.raises(SettingsError, match="TOML in UTF-8"):
        read_settings(path)


def test_an_excluded_worker_must_exist(write):
    """A worker in not_for who is not one of the campaign's is refused."""
    with pytest.raises(SettingsError, match="not_for of task 'a' must name one of the workers 0 to 2"):
        read_settings(write("id,text,not_for\na,One?,3\nb,Two?,\n"))


def test_a_misspelled_setting_is_named_before_a_missing_one(write):
    """A needed setting with a typing error is refused by the name that stands in the file."""
    path = write(privacy=None, pirvacy=SETTINGS["privacy"])

    with pytest.raises(SettingsError, match=r"no setting 'pirvacy'.*Did you mean 'privacy'"):
        read_settings(path)


PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


@pytest.fixture
def table(tmp_path):
    """Write a table, with pictures beside it; return its path."""
    (tmp_path / "whale.png").write_bytes(PNG)
    (tmp_path / "evil.png").write_bytes(b"<svg onload='alert(1)'/>")
    (tmp_path / "empty.png").write_bytes(b"")

    def write(text):
        path = tmp_path / "table.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        return path

    return write


def test_tasks_have_texts_pictures_and_exclusions(table):
    """The columns may stand in any order; a picture is known by its hash, type and size."""
    path = table('\ufefftext,id,picture,alt,not_for\n"A whale,\nsays it",w,whale.png,a whale,Ann;Bo\nPlain,p,,,\n')

    first, second = read_tasks(path)

    assert Task("w", "A whale,\nsays it", Picture(sha256(PNG).hexdigest(), "image/png", 28, "a whale")) == first.task
    assert (PNG, ("Ann", "Bo")) == (first.picture, first.not_for)
    assert (Task("p", "Plain"), None, ()) == (second.task, second.picture, second.not_for)


def test_a_task_has_the_link_of_what_is_judged(table):
    """The host gets lower case, letters beyond ASCII and spaces are percent-encoded, and the rest stays."""
    first, second = read_tasks(table("id,text,link\na,A, HTTPS://Docs.Example/Größe%20 1?q=B#c \nb,B,\n"))

    assert "https://docs.example/Gr%C3%B6%C3%9Fe%20%201?q=B#c" == first.task.link
    assert None is second.task.link


@pytest.mark.parametrize(
    ("link", "written"),
    [
        ("https://München.example/a", "https://xn--mnchen-3ya.example/a"),
        ("http://127.1:8000?a", "http://127.0.0.1:8000?a"),
    ],
)
def test_the_host_of_a_link_is_the_one_that_browsers_open(table, link, written):
    """Hosts in other scripts and odd forms of IPv4 are written as browsers do: the page names the host that sees it."""
    assert written == read_tasks(table(f"id,text,link\na,A,{link}\n"))[0].task.link


@pytest.mark.parametrize(
    "link",
    [
        "javascript:alert(1)",
        "file:///a",
        "//a.example",
        "https://me@a.example/",
        "https://a.example:443@b.example/",
        "https://a.example\\@b.example/",
        "a.example",
        "https://256.256.256.256/",
        "https://xn--a.example/",
    ],
)
def test_a_link_that_is_no_web_address_is_refused(table, link):
    """Other schemes, users and texts without a scheme are refused with their line."""
    with pytest.raises(ReportsError, match=r"line 2: a link begins with https:// or http://"):
        read_tasks(table(f"id,text,link\na,A,{link}\n"))


def test_workers_are_names_in_order(table):
    """The order of the names gives the slots."""
    assert ("Bo", "Ann") == read_worker_names(table("name\nBo\nAnn\n"))


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "the first row must name the columns id, text"),
        ("id,text\n", "the file must have a row"),
        ("id,label\na,b\n", "the first row must name the columns id, text"),
        ("id,text,id\na,b,c\n", "the first row must name"),
        ("id,text\na,b,c\n", "every row has 2 columns"),
        ('id,text\na,"b\n', "the file must be CSV in UTF-8"),
        (b"id,text\na,\xff\n", "the file must be CSV in UTF-8"),
        ("id,text\na,\n", "text must be a text"),
        ("id,text\n,b\n", "id must be a text"),
        ("id,text\na,b\na,c\n", "every id must occur once"),
        ("id,text\na b,b\na  b,c\n", "every id must occur once"),
        ("id,text,picture,alt\na,b,none.png,x\n", "a picture must be readable"),
        ("id,text,picture,alt\na,b,evil.png,x\n", "a picture must be a PNG, JPEG or WebP file"),
        ("id,text,picture,alt\na,b,empty.png,x\n", "a picture has 1 to 5,000,000 bytes"),
        ("id,text,picture,alt\na,b,whale.png,\n", "alt must be a text"),
        (f"id,text\n{'x' * 201},b\n", "id has at most 200 characters"),
    ],
)
def test_a_damaged_table_is_refused(table, text, rule):
    """Each damaged table is refused by its rule, with the file's name."""
    with pytest.raises(ReportsError) as caught:
        read_tasks(table(text))

    assert rule in caught.value.rule
    assert caught.value.source.endswith("table.csv")


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_table_of_a_spreadsheet_is_read(tmp_path, delimiter, encoding):
    """Semicolons, tabs, a mark of UTF-16, and rows without content make no difference."""
    rows = ["", ",", "id,text", "ä,Erste", "", " ,", "b,Zweite", ","]
    path = tmp_path / "tasks.csv"
    path.write_bytes("\r\n".join(rows).replace(",", delimiter).encode(encoding))

    assert ["ä", "b"] == [row.task.id for row in read_tasks(path)]


def test_a_byte_that_is_not_utf8_has_its_line(tmp_path):
    """The message has byte, line and the command that converts the file."""
    path = tmp_path / "tasks.csv"
    path.write_bytes("id,text\na,Erste\nb,für\n".encode("cp1252"))

    with pytest.raises(ReportsError, match=r"line 3: the file must be CSV in UTF-8.*byte 0xfc.*iconv -f cp1252"):
        read_tasks(path)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("id,text\na,b\n\na,c\n", "lines 2, 4: every id"),
        ('\nid,text\na,"two\nlines"\nb,\n', "line 5: text must"),
        ("id,text\na,b\n,,\nb,c,d\n", "line 4: every row has 2"),
    ],
)
def test_defects_are_named_by_their_lines(table, text, where):
    """Blank lines and cells of several lines count, as an editor counts them; the header is a line."""
    with pytest.raises(ReportsError) as caught:
        read_tasks(table(text))

    assert f"table.csv, {where}" in str(caught.value)
