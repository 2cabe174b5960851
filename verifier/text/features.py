"""The features of one passage, each computed at most once and only when a decision asks for it."""

from bisect import bisect_left
from collections.abc import Iterable
from functools import reduce
from operator import or_

from verifier.text.lazy import lazy
from verifier.text.negation import has_correction_cue, negated_clauses, negation_tokens, negators
from verifier.text.segments import segment_spans
from verifier.text.speech import mode_cues
from verifier.text.values import months, numbers, weekdays
from verifier.text.words import Occurrence, fold, literals


class TextFeatures:
    """Speech-act modes, negation, values and segments of one text."""

    def __init__(self, text: str, folded: str, present: frozenset[str]) -> None:
        self.text = text
        self._folded = folded
        self._present = present

    @classmethod
    def of(cls, texts: Iterable[str]) -> "dict[str, TextFeatures]":
        """The features of each distinct text."""
        folded = {text: fold(text) for text in texts}
        present = literals(list(folded.values()))
        return {text: cls(text, low, held) for (text, low), held in zip(folded.items(), present, strict=True)}

    @lazy
    def _mode_cues(self) -> list[Occurrence]:
        return mode_cues(self._folded, self._present)

    @lazy
    def _negators(self) -> list[Occurrence]:
        return negators(self._folded, self._present)

    @lazy
    def modes(self) -> int:
        """The speech-act modes of the text, bits of ``Mode``."""
        return reduce(or_, (flags for _, _, flags in self._mode_cues), 0)

    @property
    def has_negated_clause(self) -> bool:
        """Whether some clause of the text is negated."""
        return bool(self._negators)

    @lazy
    def negated_clause_tokens(self) -> list[frozenset[str]]:
        """The negation tokens of each negated clause."""
        return [negation_tokens(clause) for clause in negated_clauses(self.text, self._negators)]

    @lazy
    def tokens(self) -> frozenset[str]:
        """The negation tokens of the whole text."""
        return negation_tokens(self.text)

    @lazy
    def has_correction_cue(self) -> bool:
        """Whether the text itself negates or corrects something."""
        return has_correction_cue(self._folded, self._present)

    @lazy
    def numbers(self) -> frozenset[str]:
        """The numbers of the text."""
        return numbers(self.text)

    @lazy
    def weekdays(self) -> frozenset[str]:
        """The weekday names of the text."""
        return weekdays(self._folded, self._present)

    @lazy
    def months(self) -> frozenset[str]:
        """The month names of the text."""
        return months(self._folded, self._present)

    @lazy
    def _segments(self) -> list[tuple[int, int]]:
        return segment_spans(self.text)

    def segments_without(self, modes: int, negation: bool) -> list[tuple[int, str]]:
        """The segments, numbered from one, that have none of ``modes`` and, if ``negation``, no negator."""
        barred = [cue for cue in self._mode_cues if cue[2] & modes] + (self._negators if negation else [])
        ends = [end for _, end in self._segments]
        dropped = set()
        for start, end, _ in barred:
            index = bisect_left(ends, end)
            if index < len(ends) and self._segments[index][0] <= start:
                dropped.add(index)
        return [
            (index + 1, self.text[start:end])
            for index, (start, end) in enumerate(self._segments)
            if index not in dropped
        ]
