"""Campaigns, assignment parts and levels that every reader refuses, each with the defects that it may name."""

import hashlib

from tools.vector_documents import (
    RELAY,
    UNREDUCED,
    Vector,
    asked,
    blocks,
    campaign,
    canonical,
    channels,
    levelled,
    scaled,
)

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.mechanisms import RandomizedResponse


def refused_campaigns() -> list[Vector]:
    """Return campaigns that every reader refuses, each with the defects that it may name."""
    small = channels()["two labels and NULL"]
    assignment = [[0, 1], [1, 2]]
    both = [[0, 1], [0, 1]]
    base, _ = campaign([small], assignment)
    text = canonical(base)
    spelled = {
        "a space": text.replace(",", ", ", 1),
        "a line end at the end": text + "\n",
        "a byte order mark": "\ufeff" + text,
        "a key twice": text.replace('"cells":2,', '"cells":2,"cells":2,'),
        "a key twice with two values": text.replace('"min_reports":2,', '"min_reports":1,"min_reports":2,'),
        "a whole number written as a float": text.replace('"cells":2,', '"cells":2.0,'),
        "a number with an exponent": text.replace('"cells":2,', '"cells":2e0,'),
        "a negative zero": text.replace('"purge_after_days":30', '"purge_after_days":-0'),
        "NaN": text.replace('"purge_after_days":30', '"purge_after_days":NaN'),
        "an escape that is not needed": text.replace('"en"', '"\\u0065n"'),
        "a letter that is not escaped": text.replace("Night", "N\u00e4cht"),
        "keys in another order": '{"title":"x",' + text.replace('"title":"Night shifts 2027",', "")[1:],
        "cut in the middle": text[: len(text) // 2],
        "nothing": "",
    }
    canon = {"not canonical", "not json", "number"}
    vectors = [{"name": name, "campaign": changed, "defects": sorted(canon)} for name, changed in spelled.items()]
    return (
        vectors
        + [
            {"name": name, "campaign": canonical({**base, **changed}), "defects": sorted(defects)}
            for name, (changed, defects) in {**changed_fields(base), **changed_channels(base)}.items()
        ]
        + [
            {"name": f"a relay: {name}", "campaign": canonical(made[0]), "defects": ["misused relay", "relay"]}
            for name, made in {
                "one worker is asked more than the others": campaign([small], [[0, 1, 2], [0], [0]], relay=RELAY),
                "a worker is asked all tasks but the first": campaign([small], [[0, 1, 2], [1, 2]], relay=RELAY),
                "workers of another part are asked less": campaign([small], [[0, 1]] * 100 + [[0]] * 30, relay=RELAY),
                "a part too few is whole": campaign([small], [[0, 1]] * 99 + [[1]], relay=RELAY),
                "a key that is no point": campaign([small], both, relay={**RELAY, "public_key": "04" + "ab" * 64}),
                "a key whose x is not reduced": campaign([small], both, relay={**RELAY, "public_key": UNREDUCED}),
            }.items()
        ]
        + [
            {"name": f"levels: {name}", "campaign": canonical({**levelled()[0], **changed}), "defects": sorted(defects)}
            for name, (changed, defects) in changed_levels().items()
        ]
        + [
            {"name": f"questions: {name}", "campaign": canonical({**asked()[0], **changed}), "defects": sorted(defects)}
            for name, (changed, defects) in changed_questions().items()
        ]
        + [
            {"name": f"links: {name}", "campaign": canonical({**base, "links": links}), "defects": ["format", "links"]}
            for name, links in wrong_links(len(base["tasks"])).items()
        ]
        + [
            {"name": f"a later round: {name}", "campaign": canonical({**base, "earlier": one}), "defects": ["format"]}
            for name, one in earlier_rounds().items()
        ]
    )


def wrong_links(tasks: int) -> dict[str, object]:
    """Return links that no page may open, or that are not one for each task."""
    others = [None] * (tasks - 1)
    texts = {
        "a program": "javascript:alert(1)",
        "a program after an address": "javascript://a.example/%0Aalert(1)",
        "data": "data:text/html,<script>alert(1)</script>",
        "a file": "file:///etc/passwd",
        "another scheme": "ftp://a.example/1",
        "no scheme": "//a.example/1",
        "a path": "/a/#1.x",
        "a user": "https://school.example@a.example/",
        "a host in capital letters": "https://A.example/",
        "a scheme in capital letters": "HTTPS://a.example/",
        "another script": "https://a.example/\u00e4",
        "a space": "https://a.example/1 2",
        "a line end": "https://a.example/1\n",
        "a backslash for a slash": "https:\\\\a.example\\1",
        "a change of direction": "https://a.example/\u202e1",
        "no host": "https:///1",
        "too long a text": "https://a.example/" + "1" * 1983,
        "an empty text": "",
    }
    return {
        **{name: [text, *others] for name, text in texts.items()},
        "a number": [1, *others],
        "one too few": others,
        "one too many": [None, None, *others],
        "a text alone": "https://a.example/",
        "null": None,
    }


def changed_questions() -> dict[str, tuple[Vector, set[str]]]:
    """Return changes of a sound campaign with three questions, as `changed_levels`."""
    base, _ = asked()
    first, second, third = base["questions"]
    single, _ = campaign([channels()["two labels and NULL"]], [[0, 1], [1, 2]])
    groups, (low, middle, high) = base["groups"], base["certificates"]
    worse = RandomizedResponse(alphabet=Categories(("no", "yes")), epsilon=3.0).channel().certificate()
    public = RandomizedResponse(alphabet=Categories(("a", "b")), epsilon=1.0, participation="public").channel()
    near = scaled(Scale(-0.0003, 0.0002, 0.00025)).certificate()
    dealt = {**groups, "choice": [[0, 1, 2], [1, 2, 0]], "slot_group": [0, 1, 0]}
    grouped, questions = {"groups", "questions"}, {"questions"}
    return {
        "a text twice": ({"questions": [first, second, {**third, "text": second["text"]}]}, questions),
        "two texts that look alike": ({"questions": [first, second, {**third, "text": "Question  1?"}]}, questions),
        "a text that differs invisibly": (
            {"questions": [first, second, {**third, "text": "Question 1\u200b?"}]},
            {"questions", "text"},
        ),
        "a text that changes direction": (
            {"questions": [first, second, {**third, "text": "Question\u202e 2?"}]},
            {"questions", "text"},
        ),
        "an empty text": ({"questions": [first, second, {**third, "text": ""}]}, {"questions", "text"}),
        "another first one": ({"question": "How much?"}, questions),
        "the first one is not named": ({"questions": [second, third]}, grouped),
        "a single one": ({"questions": [first]}, grouped),
        "one of a campaign with one channel": (
            {**single, "questions": [{"cells": single["cells"], "text": single["question"]}]},
            grouped,
        ),
        "one with its groups": (
            {
                **single,
                "questions": [{"cells": single["cells"], "text": single["question"]}],
                "groups": {"choice": [[0]], "task_group": [0] * len(single["tasks"]), "slot_group": [0, 0]},
            },
            grouped,
        ),
        "none": ({"questions": []}, grouped),
        "null": ({"questions": None}, questions),
        "a number": ({"questions": 3}, questions),
        "texts alone": ({"questions": [one["text"] for one in base["questions"]]}, questions),
        "a field too many": ({"questions": [first, second, {**third, "labels": ["a"]}]}, {"format", "questions"}),
        "one without a channel": ({"questions": [*base["questions"], {**third, "text": "More?"}]}, grouped),
        "a channel without one": ({"certificates": [low, middle, high, worse]}, grouped),
        "one without tasks": ({"groups": {**groups, "task_group": [0, 0, 0, 1, 1, 1]}}, grouped),
        "a task of one that does not exist": (
            {"groups": {**groups, "task_group": [0, 0, 0, 1, 1, 3]}},
            grouped,
        ),
        "a task of none": ({"groups": {**groups, "task_group": [0, 0, 0, 1, 1]}}, grouped),
        "tasks in another order": ({"groups": {**groups, "task_group": [0, 0, 1, 0, 1, 2]}}, questions),
        "no groups": ({"groups": None}, grouped),
        "channels in another order": ({"groups": {**groups, "choice": [[1, 0, 2]]}}, questions),
        **{
            f"{canonical(value)} in {field}": ({"groups": {**groups, field: value}}, grouped)
            for field in ("choice", "task_group", "slot_group")
            for value in (None, "0", [None], [0], [["0", 1, 2]])
        },
        "two with one channel": ({"groups": {**groups, "choice": [[0, 1, 1]]}}, grouped),
        "channels that differ by worker": ({"groups": dealt}, questions),
        "levels": ({"levels": 3, "body_bytes": base["body_bytes"] + 1}, {"groups", "levels", "questions"}),
        "a relay": ({"relay": RELAY}, {"questions", "relay"}),
        "a prior": ({"prior": "cd" * 32}, questions),
        "a number of tasks that is 0": ({"questions": [first, second, {**third, "cells": 0}]}, questions),
        "a number of tasks that is text": ({"questions": [first, second, {**third, "cells": "1"}]}, questions),
        "more tasks than one has": ({"questions": [first, {**second, "cells": 1}, {**third, "cells": 2}]}, questions),
        "fewer cells than their sum": ({"cells": 4, "body_bytes": 4}, questions),
        "more cells than their sum": ({"cells": 6, "body_bytes": 6}, questions),
        "the labels of the second": (
            {"labels": [str(k) for k in range(11)]},
            {"labels"},
        ),
        "public participation in one": (
            {"certificates": [low, middle, public.certificate()]},
            {"participation"},
        ),
        "a scale that is not written alike": ({"certificates": [low, near, high]}, {"alphabet"}),
        "a table that is worse than claimed": (
            {"certificates": [low, middle, resealed(high, {"ratio": low["ratio"]})]},
            {"ratio"},
        ),
        "a simulation in one": (
            {"certificates": [low, middle, resealed(high, {"mechanism": "designed, LISTS FROM ANSWERS: no privacy"})]},
            {"no privacy"},
        ),
        "an answer that is sent as it is": (
            {"certificates": [low, middle, {"unprotected": high["alphabet"]}]},
            {"format"},
        ),
        "a name of a task twice in one": (
            {"tasks": [base["tasks"][0], *base["tasks"][:1], *base["tasks"][2:]]},
            {"task"},
        ),
        "names of tasks that look alike in one": (
            {"tasks": [{**base["tasks"][0], "id": "a b"}, {**base["tasks"][1], "id": "a  b"}, *base["tasks"][2:]]},
            {"task"},
        ),
    }


def changed_levels() -> dict[str, tuple[Vector, set[str]]]:
    """Return changes of a sound campaign with levels by name, and the defects that a reader may name."""
    base, _ = levelled()
    low, middle, high = base["certificates"]
    many = [scaled(Scale(0, 10), 0.5 * number).certificate() for number in range(1, 6)]
    public = [
        RandomizedResponse(alphabet=Scale(0, 10), epsilon=epsilon, participation="public").channel().certificate()
        for epsilon in (0.5, 1.0, 2.0)
    ]
    worse = {name: middle[name] for name in ("outputs", "rows")}
    dealt = {"choice": [[0, 1], [2, 2]], "task_group": [0, 1], "slot_group": [0, 1]}
    return {
        "not ascending": ({"certificates": [low, high, middle]}, {"levels"}),
        "descending": ({"certificates": [high, middle, low]}, {"levels"}),
        "one twice": ({"certificates": [low, middle, middle]}, {"levels"}),
        "two tables of one ratio": ({"certificates": [low, blocks(0.5, (3,)).certificate(), high]}, {"levels"}),
        "one more than channels": ({"certificates": [low, middle]}, {"levels"}),
        "a channel for three": ({"certificates": [low]}, {"levels"}),
        "a channel that is no level": ({"levels": 2}, {"levels"}),
        "a single one": ({"levels": 1, "certificates": [low]}, {"levels"}),
        "five": ({"levels": 5, "certificates": many}, {"levels"}),
        "true": ({"levels": True}, {"levels"}),
        "a text": ({"levels": "3"}, {"levels"}),
        "a list": ({"levels": [0.5, 1, 2]}, {"levels"}),
        "null": ({"levels": None}, {"levels"}),
        "a fraction": ({"levels": 2.5}, {"levels"}),
        "no byte for the level": ({"body_bytes": base["body_bytes"] - 1}, {"number"}),
        "channels by groups, too": ({"groups": dealt}, {"levels"}),
        "public participation": ({"certificates": public}, {"levels"}),
        "a relay": ({"relay": RELAY}, {"levels"}),
        "a table that is worse than claimed": (
            {"certificates": [resealed(low, worse), middle, high]},
            {"ratio"},
        ),
        "a table of another seal": ({"certificates": [{**low, "ratio": middle["ratio"]}, middle, high]}, {"hash"}),
        "a row of one table is short": (
            {"certificates": [low, resealed(middle, {"rows": [middle["rows"][0][:-1], *middle["rows"][1:]]}), high]},
            {"shape"},
        ),
        "a level without randomization": (
            {"certificates": [low, middle, {"unprotected": low["alphabet"]}]},
            {"format"},
        ),
        "a prior that is no SHA-256": ({"prior": "CD" * 32}, {"prior"}),
        "a prior that is null": ({"prior": None}, {"prior"}),
    }


def earlier_rounds() -> dict[str, object]:
    """Return what a document may say of rounds before it; no campaign has any."""
    first, second = ({"campaign": name * 43, "cells": 2, "numerator": 11, "denominator": 4} for name in ("A", "B"))
    return {"two before it": [first, second], "one before it": [first], "none before it": [], "null": None}


def chosen_levels() -> list[Vector]:
    """Return levels as JSON texts, and whether a campaign with as many levels, or without any (null), has them."""
    kinds = {
        "the first": ("0", 3, True),
        "the last": ("2", 3, True),
        "too high": ("3", 3, False),
        "negative": ("-1", 3, False),
        "missing": ("null", 3, False),
        "true": ("true", 3, False),
        "a float": ("1.0", 3, False),
        "a fraction": ("0.5", 3, False),
        "a text": ('"1"', 3, False),
        "a list": ("[1]", 3, False),
        "a level of a longer list": ("2", 2, False),
        "a level where there are none": ("0", None, False),
    }
    return [
        {"name": name, "level": text, "levels": levels, "accepted": accepted}
        for name, (text, levels, accepted) in kinds.items()
    ]


def changed_channels(base: Vector) -> dict[str, tuple[Vector, set[str]]]:
    """Return campaigns with other alphabets, claims and labels than a device shows, as `changed_fields`."""
    sealed = base["certificates"][0]
    groups = {"choice": [[0], [1]], "task_group": [0, 0, 0], "slot_group": [0, 1]}
    scale = RandomizedResponse(alphabet=Scale(1, 2), epsilon=0.7).channel().certificate()
    listed = resealed(scale, {"alphabet": {"kind": "categories", "names": ["1", "2"], "ordered": True}})
    ordered = resealed(sealed, {"alphabet": {**sealed["alphabet"], "ordered": True}})
    return {
        "a second certificate over ordered labels": ({"certificates": [sealed, ordered], "groups": groups}, {"labels"}),
        "a scale and a list of its numbers": (
            {"certificates": [scale, listed], "groups": groups, "labels": ["1", "2"]},
            {"labels"},
        ),
        **{
            f"a scale {name}": (
                {"certificates": [made.certificate()], "labels": list(made.alphabet.names)},
                {"alphabet", "labels"},
            )
            for name, made in {
                "with a point near 0": scaled(Scale(-0.0003, 0.0002, 0.00025)),
                "with 17 digits": scaled(Scale(0.1, 1.2111111011111104, 0.1234567890123456)),
            }.items()
        },
        "a report symbol of 201 characters": (symbols(sealed, "x" * 201), {"labels"}),
        "a label of 201 characters": (relabelled(sealed, "x" * 201), {"labels"}),
        "a report symbol that reads like no answer": (symbols(sealed, "No answer"), {"labels"}),
        "a claim of 2^53": ({"certificates": [resealed(sealed, {"ratio": [2**53, 1]})]}, {"number", "ratio"}),
        **{
            f"a label that reads like no answer: {label}": (relabelled(sealed, label), {"labels"})
            for label in ("No answer", "keine Antwort", "NO\u00a0ANSWER!", "\uff2e\uff4f answer", "(Keine  Antwort)")
        },
        **{
            f"a label of {name}": (relabelled(sealed, label), {"text"})
            for name, label in {
                "a null notehead": "\U0001d159",
                "an object replacement": "\ufffc",
                "a Khitan filler": "\U00016fe4",
                "an accent alone": "\u0301",
                "an unassigned sign": "\ufdd0",
                "no character": "no\uffff",
            }.items()
        },
        **{
            f"two tasks whose ids look alike but for {name}": (
                {"tasks": [{**task, "id": text} for task, text in zip(base["tasks"], (*ids, "c"), strict=True)]},
                {"task", "text"},
            )
            for name, ids in {
                "a tab": ("a b", "a\tb"),
                "a sign inside a letter": ("\u00e9", "e\u200b\u0301"),
                "a byte order mark": ("ab", "a\ufeffb"),
                "an empty sign": ("a b", "a \u200b\u2800b"),
            }.items()
        },
    }


def symbols(sealed: Vector, name: str) -> Vector:
    """Return the changes of a campaign whose first report symbol has another name."""
    return {"certificates": [resealed(sealed, {"outputs": [name, *sealed["outputs"][1:]]})]}


def relabelled(sealed: Vector, label: str) -> Vector:
    """Return the changes of a campaign whose first label is another one."""
    labels = [label, *sealed["alphabet"]["names"][1:]]
    changed = {"alphabet": {**sealed["alphabet"], "names": labels}, "outputs": [*labels, *sealed["outputs"][2:]]}
    return {"labels": labels, "certificates": [resealed(sealed, changed)]}


def changed_fields(base: Vector) -> dict[str, tuple[Vector, set[str]]]:
    """Return changes of a sound campaign by name, and the defects that a reader may name."""
    sealed = base["certificates"][0]
    other = RandomizedResponse(alphabet=Categories(("no", "yes")), epsilon=1.0, participation="public").channel()
    foreign = RandomizedResponse(alphabet=Categories(("no", "maybe")), epsilon=1.0).channel()
    two = {"certificates": [sealed, other.certificate()]}
    groups = {"choice": [[0], [1]], "task_group": [0, 0, 0], "slot_group": [0, 1]}
    task = base["tasks"][0]
    svg = {"sha256": "ab" * 32, "type": "image/svg+xml", "bytes": 9, "alt": "x"}
    relayed = {"tasks": base["tasks"][:2]}  # every worker is asked both
    return {
        "another format": ({"format": "crowdveil-campaign/2"}, {"format"}),
        "a field too many": ({"note": "x"}, {"format"}),
        "a field named by a point": ({".": 1}, {"format"}),
        "a field named by a line end and a point, and a wrong number of answers": ({"\n.": 1, "cells": 5}, {"format"}),
        "a certificate with a field named by a point": (
            {"certificates": [resealed(sealed, {".": 1, "ratio": [1, 1]})]},
            {"format"},
        ),
        "a key with a capital": ({"Note": "x"}, {"format", "key"}),
        "a title that is too long": ({"title": "x" * 201}, {"text"}),
        "a title that is a number": ({"title": 5}, {"text"}),
        "a consent that is too long": ({"consent": "x" * 20_001}, {"text"}),
        "a title of two lines": ({"title": "Wards\nepsilon 0.001"}, {"text"}),
        "a title that changes direction": ({"title": "Wards \u202e100.0 nolispe"}, {"text"}),
        "a title with white space around it": ({"title": " Wards"}, {"text"}),
        "a question that changes direction": ({"question": "How often\u2067?"}, {"text"}),
        "a question without a visible character": ({"question": "\n"}, {"text"}),
        "a consent that moves the cursor": ({"consent": "Fine.\u001b[2J"}, {"text"}),
        "a consent with another line end": ({"consent": "Fine.\r\nReally."}, {"text"}),
        "a consent of two paragraphs by a separator": ({"consent": "Fine.\u2029Really."}, {"text"}),
        "a task whose id has two lines": ({"tasks": [{**task, "id": "t\n0"}, *base["tasks"][1:]]}, {"task", "text"}),
        "a task whose text is invisible": (
            {"tasks": [{**task, "text": "\u2800"}, *base["tasks"][1:]]},
            {"task", "text"},
        ),
        "a picture whose text changes direction": (
            {"tasks": [{**task, "picture": {**svg, "type": "image/png", "alt": "a\u202eb"}}, *base["tasks"][1:]]},
            {"picture", "text"},
        ),
        "a relay whose operator has two lines": (
            {**relayed, "relay": {**RELAY, "operator": "Library\nPrivacy loss: epsilon 0.001."}},
            {"relay", "text"},
        ),
        "a relay whose operator changes direction": (
            {**relayed, "relay": {**RELAY, "operator": "Library\u202e"}},
            {"relay", "text"},
        ),
        "a text in another normal form": ({"title": "a\u0308"}, {"text"}),
        "half a surrogate pair": ({"title": "\ud83d"}, {"text", "not canonical"}),
        "a service without TLS": ({"url": "http://grades.example.org"}, {"url"}),
        "a service that is a script": ({"url": "javascript:alert(1)"}, {"url"}),
        "a service whose host has an empty part": ({"url": "https://grades..example.org"}, {"url"}),
        "a service with a port of six digits": ({"url": "https://grades.example.org:123456"}, {"url"}),
        "a service with its default port": ({"url": "https://grades.example.org:443"}, {"url"}),
        "a service with dot segments": ({"url": "https://grades.example.org/a/../b"}, {"url"}),
        "a service with a short IPv4 address": ({"url": "http://127.0.1"}, {"url"}),
        "a service in octal numbers": ({"url": "https://0300.0.2.7"}, {"url"}),
        "a service with a port above 65535": ({"url": "https://grades.example.org:65536"}, {"url"}),
        "a service that is too long": ({"url": "https://grades.example.org/" + "x" * 180}, {"url", "text"}),
        "a day that is empty": ({"opens": ""}, {"day"}),
        "a day in the year 0": ({"opens": "0000-01-01"}, {"day"}),
        "a day that does not exist": ({"closes": "2027-02-30"}, {"day"}),
        "a time of day": ({"opens": "2027-01-10T08:00"}, {"day"}),
        "closes before it opens": ({"closes": "2027-01-09"}, {"day"}),
        "an integer beyond 2^53": ({"purge_after_days": 2**53}, {"number"}),
        "a float": ({"purge_after_days": 0.5}, {"number"}),
        "a body of another length": ({"body_bytes": 3}, {"number"}),
        "two bytes where one is enough": ({"symbol_bytes": 2, "body_bytes": 4}, {"number"}),
        "more cells than tasks": ({"cells": 4, "body_bytes": 4}, {"number"}),
        "no slot": ({"slots": 0}, {"number", "part"}),
        "a part too many": ({"assignment_parts": base["assignment_parts"] * 2}, {"part"}),
        "a part that is no SHA-256": ({"assignment_parts": ["x"]}, {"part"}),
        "a task without a text": ({"tasks": [{"id": "t0", "picture": None}, *base["tasks"][1:]]}, {"task"}),
        "two tasks with one id": ({"tasks": [task, task, base["tasks"][2]]}, {"task"}),
        "two tasks whose ids look alike": (
            {"tasks": [{**task, "id": "t 0"}, {**task, "id": "t  0"}, base["tasks"][2]]},
            {"task"},
        ),
        "two tasks whose ids differ invisibly": (
            {"tasks": [task, {**task, "id": task["id"] + "\u200b"}, base["tasks"][2]]},
            {"task", "text"},
        ),
        "a picture that can run scripts": (
            {"tasks": [{**task, "picture": svg}, *base["tasks"][1:]]},
            {"picture"},
        ),
        "other labels than the certificate": ({"labels": ["no", "maybe"]}, {"labels"}),
        "a label twice": ({"labels": ["no", "no"]}, {"labels", "duplicate symbols"}),
        "no certificate": ({"certificates": []}, {"format"}),
        "an answer that is sent as it is": ({"certificates": [{"unprotected": sealed["alphabet"]}]}, {"format"}),
        "a certificate over other labels": ({"certificates": [foreign.certificate()]}, {"labels"}),
        "two certificates without groups": (two, {"groups"}),
        "two kinds of participation": ({**two, "groups": groups}, {"participation"}),
        "groups without a need": ({"groups": {**groups, "choice": [[0], [0]]}}, {"groups"}),
        "a group that does not exist": (
            {"certificates": [sealed, sealed], "groups": {**groups, "slot_group": [0, 2]}},
            {"groups"},
        ),
        **{
            f"forged certificate: {name}": ({"certificates": [resealed(sealed, changed)]}, {defect})
            for name, changed, defect in forged(sealed)
        },
        "forged certificate: changed after sealing": ({"certificates": [{**sealed, "ratio": [9, 1]}]}, {"hash"}),
    }


def forged(sealed: Vector) -> list[tuple[str, Vector, str]]:
    """Return changes of a certificate that a new seal cannot hide, with their defects."""
    rows, (numerator, denominator) = sealed["rows"], sealed["ratio"]
    first = rows[0]
    return [
        ("one row sums to one more", {"rows": [[first[0] + 1, *first[1:]], *rows[1:]]}, "row sum"),
        ("an entry of 0", {"rows": [[first[0] + first[1], 0, first[2]], *rows[1:]]}, "zero entry"),
        ("a negative entry", {"rows": [[first[0] + 2 * first[1], -first[1], first[2]], *rows[1:]]}, "negative entry"),
        ("a ratio that is too small", {"ratio": [numerator - 1, denominator]}, "ratio"),
        ("a row is missing", {"rows": rows[:-1]}, "shape"),
        ("a row is short", {"rows": [first[:-1], *rows[1:]]}, "shape"),
        ("text as an entry", {"rows": [[str(first[0]), *first[1:]], *rows[1:]]}, "non-integer"),
        ("another denominator", {"denominator": sealed["denominator"] // 2}, "denominator"),
        ("a report symbol twice", {"outputs": ["no", "no", "NULL"]}, "duplicate symbols"),
        ("a mechanism that promises", {"mechanism": "epsilon=0.01"}, "mechanism"),
        ("memoised, which is no mechanism any more", {"mechanism": "memoised"}, "mechanism"),
        ("designed and memoised", {"mechanism": "designed+memoised"}, "mechanism"),
        ("a field too many", {"note": "safe"}, "format"),
        ("a simulation", {"mechanism": "randomized-response, SIMULATION from seed 7: no privacy"}, "no privacy"),
        ("lists from answers", {"mechanism": "randomized-response, LISTS FROM ANSWERS: no privacy"}, "no privacy"),
        ("a binned reproduction", {"mechanism": "laplace, real-valued, binned (simulation only)"}, "no privacy"),
    ]


def resealed(sealed: Vector, changed: Vector) -> Vector:
    """Return a changed certificate with the SHA-256 of its new content."""
    fields = {name: value for name, value in {**sealed, **changed}.items() if name != "sha256"}
    return {**fields, "sha256": hashlib.sha256(canonical(fields).encode()).hexdigest()}


def refused_parts() -> list[Vector]:
    """Return assignment parts that every reader refuses though the campaign names their hash."""
    small = channels()["two labels and NULL"]
    base, (part,) = campaign([small], [[0, 1], [1, 2]])
    changes: dict[str, Vector] = {
        "another format": {"format": "crowdveil-assignment/2"},
        "a field too many": {"note": 1},
        "another first slot": {"first": 1},
        "a slot too few": {"tasks": [[0, 1]]},
        "a task twice": {"tasks": [[0, 0], [1, 2]]},
        "descending tasks": {"tasks": [[1, 0], [1, 2]]},
        "a task that does not exist": {"tasks": [[0, 3], [1, 2]]},
        "more tasks than cells": {"tasks": [[0, 1, 2], [1, 2]]},
        "a slot without tasks": {"tasks": [[], [1, 2]]},
        "true for a task": {"tasks": [[0, True], [1, 2]]},
    }
    texts = {name: canonical({**part, **changed}) for name, changed in changes.items()}
    several, _ = asked()
    most: Vector = {"format": "crowdveil-assignment/1", "first": 0}
    uneven = {
        "more tasks of a question than it says": [[0, 1, 3, 5], [1, 3, 4, 5], [0, 1, 2]],
        "as many tasks as it says of all questions, but other ones": [[0, 1, 2, 3, 5], [1, 3, 4, 5], [2, 3, 4]],
    }
    texts["spaces"] = canonical(part).replace(",", ", ")
    vectors = [
        {
            "name": name,
            "campaign": canonical({**base, "assignment_parts": [hashlib.sha256(text.encode()).hexdigest()]}),
            "part": text,
            "defects": ["not canonical"] if name == "spaces" else ["part"],
        }
        for name, text in texts.items()
    ]
    for name, lists in uneven.items():
        text = canonical({**most, "tasks": lists})
        named = {**several, "assignment_parts": [hashlib.sha256(text.encode()).hexdigest()]}
        vectors.append({"name": name, "campaign": canonical(named), "part": text, "defects": ["part"]})
    return [*vectors, {"name": "changed", "campaign": canonical(base), "part": texts["spaces"], "defects": ["hash"]}]
