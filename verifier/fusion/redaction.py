"""What is delivered of a draft: all of it, or all but its unsupported claims."""

from collections.abc import Iterable
from typing import Literal, Protocol

from verifier.fusion.records import Range, check_range
from verifier.fusion.verdicts import Verdict

NOTICE = "[unsupported claim removed]"


class Judged(Protocol):
    """A verdict on a range of a draft."""

    @property
    def draft_span(self) -> Range:
        """Half-open, in code points."""
        ...

    @property
    def verdict(self) -> Verdict:
        """Only ``unsupported`` is cut out."""
        ...


def redact(draft: str, verdicts: Iterable[Judged]) -> str:
    """The draft with a notice in place of every unsupported claim; ranges that overlap or touch get one notice.

    A range goes as a whole: where an unsupported claim shares words with a supported one, they are removed, because
    no unsupported claim may be delivered. A draft without unsupported claims is returned as it is. Raises InputError
    for a range that is empty or does not lie in the draft.

    >>> from verifier.fusion import ClaimVerdict
    >>> draft = "It opened in 1932. It is blue. It is tall."
    >>> redact(draft, [ClaimVerdict("", (19, 30), Verdict.UNSUPPORTED), ClaimVerdict("", (0, 18), Verdict.SUPPORTED)])
    'It opened in 1932. [unsupported claim removed] It is tall.'
    """
    pieces, kept_from = list[str](), 0
    for start, end in removed_ranges(draft, verdicts):
        pieces += (draft[kept_from:start], NOTICE)
        kept_from = end
    return "".join([*pieces, draft[kept_from:]])


def removed_ranges(draft: str, verdicts: Iterable[Judged]) -> list[Range]:
    """The ranges that ``redact`` replaces, merged and in order."""
    unsupported = sorted(one.draft_span for one in verdicts if one.verdict == Verdict.UNSUPPORTED)
    merged = list[Range]()
    for start, end in unsupported:
        check_range((start, end), "an unsupported claim", len(draft))
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def delivered_text(draft: str, verdicts: Iterable[Judged], policy: Literal["flag", "redact"]) -> str:
    """What goes out under a policy: ``flag`` leaves the draft as it is, ``redact`` cuts unsupported claims out."""
    return redact(draft, verdicts) if policy == "redact" else draft
