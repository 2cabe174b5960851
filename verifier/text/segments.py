"""Segments of a passage: what the localized recheck keeps or leaves out (SPEC, "Segments")."""

import re

_SENTENCE_END = re.compile(r"[.!?]\s+(?=[\"'(\[{]*[A-Z0-9])")


def segment_spans(text: str) -> list[tuple[int, int]]:
    """The half-open spans of the segments of ``text`` in order, stripped and not blank.

    A text is cut at line ends, and at white space after . ! or ? before an ASCII capital or a digit that may
    stand behind opening quotes and brackets. Segment k of a record is item k - 1.
    """
    spans = []
    offset = 0
    for line in text.split("\n"):
        start = 0
        for end in [*(match.start() + 1 for match in _SENTENCE_END.finditer(line)), len(line)]:
            piece = line[start:end]
            left = len(piece) - len(piece.lstrip())
            length = len(piece.strip())
            if length:
                spans.append((offset + start + left, offset + start + left + length))
            start = end
        offset += len(line) + 1
    return spans
