"""Addresses of services in the one form of the URL standard (url.spec.whatwg.org), which browsers write."""

import re
import unicodedata
from collections.abc import Sequence

from crowdveil.standalone.checks import URL, fits, visible_form

ADDRESS = re.compile(r"(https?)://([^:/]+)(?::([0-9]{0,9}))?((?:/[a-z0-9._~-]+)*)/?", re.IGNORECASE | re.ASCII)
DEFAULT_PORTS = {"http": 80, "https": 443}
_LABEL = re.compile("[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_NUMBER_IN_HOST = re.compile("0x(?P<hexadecimal>[0-9a-f]*)|(?P<octal>0[0-7]*)|(?P<decimal>[1-9][0-9]*)")


def normal_address(text: str) -> str | None:
    """Return the address of a service as browsers write it, without a final slash; None if it is refused.

    Scheme and host get lower case, a host in other scripts its xn-- form, an IPv4 address four decimal numbers. The
    default port and dot segments are left out. Refused are users, queries, fragments, percent signs, backslashes,
    white space, IPv6, a dot at the end of a name, ports above 65535, and http beyond this computer.
    """
    found = ADDRESS.fullmatch(text[:1000])
    if found is None:
        return None
    scheme, segments = found[1].lower(), list[str]()
    for segment in found[4].split("/")[1:]:
        segments = segments[:-1] if segment == ".." else [*segments, segment] if segment != "." else segments
    port = int(found[3] or DEFAULT_PORTS[scheme])
    place = normal_host(found[2]) + ("" if port == DEFAULT_PORTS[scheme] else f":{port}")
    address = f"{scheme}://{'/'.join([place, *segments])}"
    return address if port < 65536 and fits(address, URL) else None


def _is_of_host(sign: str) -> bool:
    """Return whether a visible character is a letter, a mark, a digit or a symbol, or separates those of a host."""
    return sign in ".-" or (unicodedata.category(sign)[0] in "LMNS" and visible_form(sign) != "")


def normal_host(host: str) -> str:
    """Return a host in ASCII and lower case; empty if it is refused."""
    if not all(map(_is_of_host, host)):
        return ""
    lower = "".join(map(str.lower, unicodedata.normalize("NFKC", host)))
    labels = unicodedata.normalize("NFKC", lower).split(".")
    numbers = labels[:-1] if labels[1:] and not labels[-1] else labels
    if re.fullmatch("[0-9]+|0x[0-9a-f]*", numbers[-1]):
        return _ipv4_address(numbers)
    texts = [*map(_label_text, labels)]
    return ".".join(map(_ascii_label, texts)) if all(texts) and _are_of_one_direction(texts) else ""


def _ipv4_address(parts: Sequence[str]) -> str:
    """Return an address of one to four numbers as four decimal ones; the last may hold several. Empty if refused."""
    bases, numbers = {"hexadecimal": 16, "octal": 8, "decimal": 10}, []
    for found in map(_NUMBER_IN_HOST.fullmatch, parts):
        if found is None or len(found[0]) > 20 or found.lastgroup is None:
            return ""
        numbers.append(int(found[found.lastgroup] or "0", bases[found.lastgroup]))
    if len(parts) > 4 or max(numbers[:-1], default=0) > 255 or numbers[-1] >= 256 ** (5 - len(parts)):
        return ""
    address = sum(number * 256 ** (3 - place) for place, number in enumerate(numbers[:-1])) + numbers[-1]
    return ".".join(map(str, address.to_bytes(4, "big")))


def _label_text(label: str) -> str:
    """Return a part of a host in its own script; empty if it is refused."""
    try:
        text = label.removeprefix("xn--").encode("ascii").decode("punycode") if label[:4] == "xn--" else label
    except ValueError:
        return ""
    if _LABEL.fullmatch(text):
        return text if text == label else ""
    lower = unicodedata.normalize("NFKC", "".join(map(str.lower, text)))
    usual = text == lower and not text.isascii() and all(sign != "." and _is_of_host(sign) for sign in text)
    usual = usual and "-" not in (text[0], text[-1]) and unicodedata.category(text[0])[0] != "M"
    return text if usual and label in (text, _ascii_label(text)) else ""


def _ascii_label(text: str) -> str:
    """Return a part of a host in ASCII (RFC 3492)."""
    return text if text.isascii() else f"xn--{text.encode('punycode').decode('ascii')}"


def _are_of_one_direction(texts: Sequence[str]) -> bool:
    """Return whether each part of a host is written in one direction, which implies the Bidi rule of RFC 5893."""
    kinds = [[unicodedata.bidirectional(sign) for sign in text] for text in texts]
    right = [not {"R", "AL", "AN"}.isdisjoint(kind) for kind in kinds]
    pure = (({"R", "AL"} >= set(kind)) if own else kind[0] == "L" for own, kind in zip(right, kinds, strict=True))
    return not any(right) or all(pure)
