"""Tables of tasks and workers: pictures by their content, exclusions, and every damaged table refused."""

from hashlib import sha256

import pytest

from crowdveil.campaign.document import Picture, Task
from crowdveil.campaign.source.csv_files import read_tasks, read_workers
from crowdveil.errors import ReportsError

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


def test_workers_are_names_in_order(table):
    """The order of the names gives the slots."""
    assert ("Bo", "Ann") == read_workers(table("name\nBo\nAnn\n"))


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
        ("id,text\na,b\na,c\n", "every id occurs once"),
        ("id,text\na b,b\na  b,c\n", "every id occurs once"),
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
