"""Concrete values that two texts can disagree on: numbers, weekdays, months (SPEC, "Refutation corroboration")."""

import re

from verifier.text.words import CueTable, is_word_character

_WEEKDAYS = CueTable({1: "monday, tuesday, wednesday, thursday, friday, saturday, sunday"})
_MONTHS = CueTable(
    {1: "january, february, march, april, may, june, july, august, september, october, november, december"}
)
_DIGITS = re.compile(r"\d+")


def numbers(text: str) -> frozenset[str]:
    """The numbers of a text as written: an optional minus, digits, optionally . and digits.

    A word character on either side makes it no number (``v2``, ``9x``), before the minus it makes the minus
    none (``5-7`` holds 5 and 7).
    """
    found = set()
    run = _DIGITS.search(text)
    while run:
        start, end = run.span()
        before, after = text[start - 1 : start], text[end : end + 1]
        if not is_word_character(before) and not is_word_character(after):
            fraction = _DIGITS.match(text, end + 1) if after == "." else None
            if fraction and not is_word_character(text[fraction.end() : fraction.end() + 1]):
                end = fraction.end()
            minus = before == "-" and not is_word_character(text[start - 2 : start - 1])
            found.add(text[start - minus : end])
        run = _DIGITS.search(text, end)
    return frozenset(found)


def weekdays(folded: str, present: frozenset[str]) -> frozenset[str]:
    """The weekday names of a folded text; ``present`` are its ``literals``."""
    return frozenset(folded[start:end] for start, end, _ in _WEEKDAYS.occurrences(folded, present))


def months(folded: str, present: frozenset[str]) -> frozenset[str]:
    """The full month names of a folded text; ``present`` are its ``literals``."""
    return frozenset(folded[start:end] for start, end, _ in _MONTHS.occurrences(folded, present))
