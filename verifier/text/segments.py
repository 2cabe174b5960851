"""Segments of a passage: what the localized recheck keeps or leaves out (SPEC, "Segments")."""

import re

_CUT = re.compile(r"[.!?](?=\s+[\"'(\[{]*[A-Z0-9])|\n")


def segment_spans(text: str) -> list[tuple[int, int]]:
    """The half-open spans of the segments of ``text`` in order, stripped and not blank.

    A text is cut at line ends, and at white space that follows . ! or ? before an ASCII capital or a digit that may
    stand behind opening quotes and brackets. Segment k of a record is item k - 1.
    """
    spans = []
    start = 0
    for end in [match.end() for match in _CUT.finditer(text)] + [len(text)]:
        rest = text[start:end].lstrip()
        if rest:
            spans.append((end - len(rest), end - len(rest) + len(rest.rstrip())))
        start = end
    return spans
