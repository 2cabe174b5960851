"""Hostile strings, values, JSON texts and files."""

import gzip
import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

PIECES = (
    "",
    " ",
    "\0",
    "\x1b[31m",
    "\x7f\x85\u2028\u2029",
    "\ufeff",
    "\u202e\u202d\u2066abc\u2069",
    "\u200e\u200f\u061c",
    "e" + "\u0301" * 50,
    "\U0001f469\u200d\U0001f469\u200d\U0001f467",
    "İıſΣς",
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'--><svg/onload=alert(1)>",
    "</style></title><script>",
    "javascript:alert(1)",
    "data:text/html;base64,PHNjcmlwdD4=",
    "&lt;b&gt;&#0;&#x202e;",
    "{{ 7*7 }}{% raw %}",
    "$\\frac{}$",
    "../../../etc/passwd",
    "..\\..\\windows",
    "/dev/full",
    "file:///etc/passwd",
    "s3://user:secret@bucket/../x",
    "http://[::1",
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(1,1)",
    "\t=1",
    "NaN",
    "Infinity",
    "1e999",
    "9" * 400,
    "-0",
    "²³",
    "٣.١٤",
    "1,000.50",
    "2026-03-05",
    "no longer",
    "don't",
    "if not whether",
    "He wants to, in case it might. Is it not?",
    "[S1]",
    "[[[",
    "]]",
    '"' * 30,
    "(" * 30,
    "." * 30,
    "\r",
    "\n",
    "\r\n",
    "```json\n",
    "```",
    '{"supported": true, "confidence": 0.9}',
    "\\",
    "\\ud800",
    "%00%2e%2e",
    "$(rm -rf x)`x`",
    "' OR 1=1 --",
    "Monday",
    "May 5",
    "A" * 300,
    "a b " * 50,
)

safe_text = st.one_of(
    st.sampled_from(PIECES),
    st.lists(st.sampled_from(PIECES), min_size=2, max_size=6).map("".join),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    st.lists(st.sampled_from("The sky is not blue if Mr. X wants 5 or 3.5 of it . ! ?".split()), max_size=12).map(
        " ".join
    ),
)
"""Text that UTF-8 can hold."""
surrogates = st.sampled_from(["\ud800", "a\udfffb", "\udcff", "\ud83d"])
text = st.one_of(safe_text, safe_text, safe_text, surrogates)
"""Any text of Python, lone surrogates among it."""

_numbers = st.one_of(
    st.integers(),
    st.sampled_from([0, 1, -1, 2**31, 2**63, 2**64, 10**300, -(10**30)]),
    st.floats(),
    st.sampled_from([1e308, 5e-324, 0.1, float("nan"), float("inf"), float("-inf")]),
)
leaf = st.one_of(st.none(), st.booleans(), _numbers, text)
value = st.recursive(
    leaf, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(text, inner, max_size=3)), max_leaves=6
)
"""Any JSON value, and some that JSON has no word for."""

Path = tuple[Any, ...]


def _paths(inside: Any, path: Path = ()) -> list[Path]:
    found = [path]
    for key, item in (
        inside.items() if isinstance(inside, dict) else enumerate(inside) if isinstance(inside, list) else ()
    ):
        found += _paths(item, (*path, key))
    return found


def _changed(inside: Any, path: Path, change: Callable[[Any, Any], None]) -> None:
    for key in path[:-1]:
        inside = inside[key]
    change(inside, path[-1])


@st.composite
def rows(draw: st.DrawFn, good: st.SearchStrategy[Any]) -> Any:
    """A good row with up to three fields replaced by anything, taken out, added or repeated."""
    row = json.loads(json.dumps(draw(good)))
    for _ in range(draw(st.integers(0, 3))):
        paths = [path for path in _paths(row) if path]
        if not paths:
            break
        path = draw(st.sampled_from(paths))
        kind = draw(st.integers(0, 3))
        new = draw(value)

        def change(inside: Any, key: Any, kind: int = kind, new: Any = new) -> None:
            if kind == 0:
                del inside[key]
            elif kind == 1 and isinstance(inside, dict):
                inside[str(new)] = inside[key]
            elif kind == 1:
                inside.append(inside[key])
            else:
                inside[key] = new

        _changed(row, path, change)
    return row


_SPLICES = (b"NaN", b"Infinity", b"-Infinity", b"1e999", b"1" + b"0" * 5000, b"\xff\xfe", b"\xed\xa0\x80", b"\0")


@st.composite
def json_bytes(draw: st.DrawFn, row: st.SearchStrategy[Any]) -> bytes:
    """A row as bytes of JSON, some of them spoilt: repeated keys, depth, words that JSON lacks, broken UTF-8, cuts."""
    raw = json.dumps(draw(row), ensure_ascii=draw(st.booleans())).encode(errors="surrogatepass")
    kind = draw(st.integers(0, 15))
    if kind == 0 and raw[:1] == b"{":
        return b'{"claim":"x","claim":"y",' + raw[1:]
    if kind == 1:
        depth = draw(st.sampled_from([63, 64, 65, 400, 900, 10_000]))
        inner = b"[" * depth + b"]" * depth if draw(st.booleans()) else b'{"a":' * depth + b"1" + b"}" * depth
        return raw.replace(b'"x"', inner, 1) if b'"x"' in raw else b'{"claim":' + inner + b"," + raw[1:]
    if kind == 2:
        return raw.replace(draw(st.sampled_from([b"null", b"true", b"1", b'"a"'])), draw(st.sampled_from(_SPLICES)), 1)
    place = draw(st.integers(0, len(raw)))
    if kind == 3:
        return raw[:place]
    if kind == 4:
        return raw[:place] + draw(st.one_of(st.sampled_from(_SPLICES), st.binary(max_size=6))) + raw[place:]
    if kind == 5:
        return draw(st.binary(max_size=60))
    return raw


@st.composite
def files(draw: st.DrawFn, row: st.SearchStrategy[bytes]) -> tuple[str, bytes]:
    """The name and the content of a file of rows: JSON lines or an array, perhaps compressed, perhaps damaged."""
    lines = draw(st.lists(row, max_size=5))
    name = draw(st.sampled_from(["a.jsonl", "a.json", "a.jsonl.gz", "a.json.gz", "a.parquet"]))
    end = draw(st.sampled_from([b"\n", b"\n", b"\r\n", b"\r", b"\n\n \n"]))
    if "jsonl" in name or draw(st.booleans()):
        content = end.join(lines) + (end if draw(st.booleans()) else b"")
    else:
        content = b"[" + b",".join(lines) + b"]" * draw(st.sampled_from([1, 1, 1, 0, 2]))
    if draw(st.integers(0, 5)) == 0:
        content = b"\xef\xbb\xbf" + content
    if name.endswith(".gz"):
        content = gzip.compress(content, 1)
    if draw(st.integers(0, 9)) == 0:
        content = content[: draw(st.integers(0, len(content)))] + draw(st.binary(max_size=8))
    return name, content


def fields(**inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Rows of these fields."""
    return st.fixed_dictionaries(inner)
