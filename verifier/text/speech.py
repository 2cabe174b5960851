"""Speech-act modes: what a text does other than assert (SPEC, "Speech-act modes")."""

import re
from enum import IntFlag

from verifier.text.words import CueTable, Occurrence


class Mode(IntFlag):
    """A set of speech-act modes; the modes of several texts are the union of their sets."""

    NONE = 0
    DESIRE = 1
    ATTEMPT = 2
    PLAN = 4
    ADVICE = 8
    UNCERTAINTY = 16
    CONDITIONAL = 32
    UNVERIFIED = 64
    QUESTION = 128


_CUES = CueTable(
    {
        Mode.DESIRE: "want, wants, wanted, would like, wish, wishes, wished, hope, hopes, hoped, need, needs, needed,"
        " aim+, seek+",
        Mode.ATTEMPT: "try, tries, tried, trying, attempt+, work on, works on, worked on, working on, work to,"
        " works to, worked to, working to",
        Mode.PLAN: "plan, plans, planned, planning, intend+, schedul+, consider+, explor+, evaluat+",
        Mode.ADVICE: "should, ought, recommend+, suggest+, advis+",
        Mode.UNCERTAINTY: "might, maybe, perhaps, possible, possibly, potentially, uncertain",
        Mode.UNCERTAINTY | Mode.QUESTION: "whether",
        Mode.CONDITIONAL: "if, unless, provided that, in case",
        Mode.UNVERIFIED: "unverified, unconfirmed, reportedly, allegedly",
        Mode.QUESTION: "ask, asks, asked, asking, question, questions, questioned, questioning, wonder, wonders,"
        " wondered, wondering",
    }
)
_QUESTION, _DESIRE = int(Mode.QUESTION), int(Mode.DESIRE)
_CONTRACTED_WOULD_LIKE = re.compile(r"(?<=\w)['’]d\s+like\b")


def mode_cues(folded: str, present: frozenset[str]) -> list[Occurrence]:
    """Where a folded text has which modes (bits of ``Mode``); ``present`` are its ``literals``."""
    found = list(_CUES.occurrences(folded, present))
    if "'d" in folded or "’d" in folded:
        found += [(match.start(), match.end(), _DESIRE) for match in _CONTRACTED_WOULD_LIKE.finditer(folded)]
    mark = folded.find("?")
    while mark >= 0:
        found.append((mark, mark + 1, _QUESTION))
        mark = folded.find("?", mark + 1)
    return found
