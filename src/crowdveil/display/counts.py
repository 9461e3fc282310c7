"""Counts with their nouns."""


def number_of(count: int, noun: str) -> str:
    """Return a count with its noun: "1 report", "2,000 gold tasks"; the plural of the noun ends in s."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def verb_of(count: int, singular: str, plural: str, *, whole: int | None = None) -> str:
    """Return the verb of a count, or of a part of a whole: "1 has", "1 of 5 has", "0 of 1 has", "0 of 5 have"."""
    return singular if 1 in (count, whole) else plural


def repeated_pairs_text(count: int, noun: str) -> str:
    """Return "1 row repeats a (task, worker) pair", "2 rows repeat a (task, worker) pair"."""
    return f"{number_of(count, noun)} {verb_of(count, 'repeats', 'repeat')} a (task, worker) pair"


def size_text(size: int) -> str:
    """Return bytes in the largest decimal unit below them, rounded up: "12 bytes", "51.3 MB", "2 GB"."""
    power = min(4, (len(str(max(1, size))) - 1) // 3)
    if power == 0:
        return number_of(size, "byte")
    tenths = -(-size * 10 // 1000**power)
    return f"{tenths / 10:,.10g} {('KB', 'MB', 'GB', 'TB')[power - 1]}"


def crowd_text(workers: int, tasks: int) -> str:
    """Return "5 workers on 12 tasks"."""
    return f"{number_of(workers, 'worker')} on {number_of(tasks, 'task')}"
