"""Answers checked against their own evidence plans by the fusion matcher, with or without a scorer on top."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from verifier.answers.confirm import Confirmed, ConfirmedConfig, confirm_drafts
from verifier.answers.records import Answer, CheckedAnswer, CheckedClaim, Cited, unavailable
from verifier.decompose.decomposition import Decomposer, Decomposition
from verifier.fusion.config import FusionConfig
from verifier.fusion.matcher import VERIFIED, Embedder, match_drafts
from verifier.fusion.records import ClaimVerdict, Draft, DraftVerdict
from verifier.fusion.redaction import delivered_text
from verifier.fusion.trace import trace_of


class CutsTexts(Embedder, Protocol):
    """An embedder that says which texts are too long for it."""

    def cuts(self, texts: Sequence[str]) -> list[bool]:
        """Whether only the beginning of each text is read."""
        ...


class FusedAnswers:
    """Checks answers by fusion; their spans are the evidence.

    Args:
        decomposer: finds the claims of answers that come without.
        embedder: of claims and spans alike.
        config: the formula and the policy; a ``ConfirmedConfig`` where a scorer is to be asked on top.
        scorer: of three labels, for a ``ConfirmedConfig``.
    """

    def __init__(self, decomposer: Decomposer, embedder: CutsTexts, config: FusionConfig, scorer: Any = None) -> None:
        self._decomposer = decomposer
        self._embedder = embedder
        self._config = config
        self._scorer = scorer
        self._confirm = ("", "") if scorer is None else (str(scorer.model), str(scorer.revision))

    def check(self, answers: Sequence[Answer]) -> list[CheckedAnswer]:
        """What became of each answer, in order; all claims are embedded together, and asked together."""
        found = decomposed(answers, self._decomposer)
        drafts = [answer.draft(one.claims) for answer, one in zip(answers, found, strict=True)]
        verdicts = [
            DraftVerdict(one.unavailable) if one.unavailable else verdict
            for one, verdict in zip(found, match_drafts(drafts, self._embedder, self._config), strict=True)
        ]
        stand = [Confirmed(verdict) for verdict in verdicts]
        if isinstance(self._config, ConfirmedConfig):
            stand = confirm_drafts(drafts, verdicts, self._scorer, self._config)
        cut = [self._cut(draft) for draft in drafts]
        return [self._checked(*parts) for parts in zip(answers, drafts, stand, cut, strict=True)]

    def _cut(self, draft: Draft) -> int:
        """Claims and truth-class spans that the embedder reads only the beginning of."""
        spans = [span.text for span in draft.spans if span.span_class == "truth"]
        return sum(self._embedder.cuts([*(claim.text for claim in draft.claims), *spans])) if draft.claims else 0

    def _checked(self, answer: Answer, draft: Draft, confirmed: Confirmed, cut: int) -> CheckedAnswer:
        verdict, policy, generation = confirmed.verdict, self._config.policy, answer.generation
        known = verdict.verification == VERIFIED
        if answer.claims is None:
            generation = replace(generation, decompose=f"{self._decomposer.model} {self._decomposer.revision}")
        return CheckedAnswer(
            verdict.verification,
            delivered_text(answer.answer, verdict.claims, policy) if known or policy == "flag" else None,
            tuple(_claim(claim, draft) for claim in verdict.claims),
            cut,
            trace=trace_of(draft, verdict, self._config, generation, self._confirm),
            pairs=confirmed.pairs,
            error=None if known else confirmed.error or unavailable(verdict.verification),
        )


def decomposed(answers: Sequence[Answer], decomposer: Decomposer) -> list[Decomposition]:
    """The claims of answers, in order: their own, or those that the decomposer finds."""
    found = iter(decomposer.decompose([answer.draft() for answer in answers if answer.claims is None]))
    return [next(found) if answer.claims is None else Decomposition(answer.claims) for answer in answers]


def _claim(verdict: ClaimVerdict, draft: Draft) -> CheckedClaim:
    best = verdict.best_span
    return CheckedClaim(
        verdict.text,
        *verdict.draft_span,
        verdict.verdict.value,
        verdict.score,
        verdict.numeric_gated,
        verdict.cited_markers,
        verdict.unresolved_markers,
        (Cited(best.span_id, "best", verdict.score, draft.spans[best.index].text),) if best else (),
    )
