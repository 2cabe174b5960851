"""Verifiers of cited sentences: a scorer of support, a threshold, and the rules around them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Protocol, runtime_checkable

import numpy as np

from verifier.errors import ConfigurationError
from verifier.grounding.cited import CitedSentence, Document, VerificationResult, cited_premise
from verifier.protocol import Scores
from verifier.scorers.base import raise_first, support_scores
from verifier.scorers.ensemble import EnsembleScorer, check_members

_HHEM = ("vectara/hallucination_evaluation_model", "8e4a2e6e96c708cc76c2344f7e4757df2515292c")
_MINICHECK = ("lytang/MiniCheck-Flan-T5-Large", "5294ece54f6e7a4445bf86cd20250df6e1ce9548")


@runtime_checkable
class Verifier(Protocol):
    """Checks the sentences of an answer against the document sentences that they cite."""

    def verify(self, sentences: Sequence[CitedSentence], documents: Mapping[str, Document]) -> list[VerificationResult]:
        """One result a sentence, in the same order."""
        ...


class NLIVerifier:
    """A Verifier of any scorer of support; it is a scorer itself, with the rule for blank texts.

    A sentence is supported when its score is at least the threshold. Where the premise or the sentence is blank the
    score is 0.0 and the scorer is not asked. A sentence that the scorer cannot score is not supported and has no
    score, but an error.

    Args:
        scorer: a scorer, or a factory of one (``functools.partial``), which is called when a score is first needed.
        threshold: in [0, 1]; anything else is a ConfigurationError (a ValueError).
    """

    def __init__(self, scorer: Any, threshold: float = 0.5) -> None:
        if not 0 <= threshold <= 1:
            raise ConfigurationError(f"the threshold is {threshold}: a number in [0, 1] expected")
        self.threshold = threshold
        self.given_scorer = scorer

    @cached_property
    def scorer(self) -> Any:
        """The scorer, built on first use."""
        return self.given_scorer() if isinstance(self.given_scorer, partial) else self.given_scorer

    @property
    def model(self) -> str:
        """The scorer's model."""
        return str(self.scorer.model)

    @property
    def revision(self) -> str:
        """The scorer's revision."""
        return str(self.scorer.revision)

    @property
    def dtype(self) -> str:
        """The arithmetic that the scores come from."""
        return str(getattr(self.scorer, "dtype", "unknown"))

    def verify(self, sentences: Sequence[CitedSentence], documents: Mapping[str, Document]) -> list[VerificationResult]:
        """One result a sentence, in order; VerificationError where the scorer as a whole fails."""
        pairs = [(cited_premise(sentence.supporting_sentence_ids, documents), sentence.text) for sentence in sentences]
        scores = self.score_detailed(pairs)
        return [
            VerificationResult(index, sentence.text, value >= self.threshold, value)
            if index not in scores.errors
            else VerificationResult(index, sentence.text, False, None, scores.errors[index])
            for index, (sentence, value) in enumerate(zip(sentences, scores.values.tolist(), strict=True))
        ]

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Support of each (premise, hypothesis); a pair without a score raises VerificationError."""
        scores = self.score_detailed(pairs)
        raise_first(scores.errors)
        values: list[float] = scores.values.tolist()
        return values

    def score_detailed(self, pairs: Sequence[tuple[str, str]]) -> Scores:
        """Like ``score_pairs``, with windows, parts and errors pair by pair."""
        result = Scores.whole(np.zeros(len(pairs)))
        asked = [index for index, (premise, hypothesis) in enumerate(pairs) if premise.strip() and hypothesis.strip()]
        if not asked:
            return result
        answer = support_scores(self.scorer, [pairs[index] for index in asked])
        for name in ("values", "windows", "window", "truncated"):
            getattr(result, name)[asked] = getattr(answer, name)
        errors = {asked[index]: error for index, error in answer.errors.items()}
        return replace(result, errors=errors, parts={asked[index]: parts for index, parts in answer.parts.items()})


class DualNLIVerifier(NLIVerifier):
    """Two scorers as one, see ``EnsembleScorer``, with the threshold that was fitted for HHEM and MiniCheck.

    Args:
        scorer_a, scorer_b: scorers, factories or verifiers, such as ``HHEMVerifier()`` and ``MiniCheckVerifier()``.
        aggregation: ``min``, ``mean`` or ``max``.
        threshold: in [0, 1]; 0.0562 was fitted on RAGTruth's training split with ``min``.
    """

    def __init__(self, scorer_a: Any, scorer_b: Any, aggregation: str = "min", threshold: float = 0.0562) -> None:
        members = [
            scorer.given_scorer if isinstance(scorer, NLIVerifier) else scorer for scorer in (scorer_a, scorer_b)
        ]
        check_members(members, aggregation)
        super().__init__(partial(EnsembleScorer, members, aggregation), threshold)


class HHEMVerifier(NLIVerifier):
    """HHEM-2.1-open (``verifier.scorers.hhem``), loaded when a score is first needed.

    Args:
        model_name: a hub's name or a directory; the default is pinned.
        threshold: in [0, 1].
        device: None finds one out.
        settings: other arguments of ``HHEMScorer``.
    """

    def __init__(
        self, model_name: str = _HHEM[0], threshold: float = 0.3, device: str | None = None, **settings: Any
    ) -> None:
        from verifier.scorers.hhem import HHEMScorer

        settings = {"revision": _HHEM[1] if model_name == _HHEM[0] else None, "device": device or "auto"} | settings
        super().__init__(partial(HHEMScorer, model_name, **settings), threshold)


class MiniCheckVerifier(NLIVerifier):
    """MiniCheck-Flan-T5 (``verifier.scorers.minicheck_flan_t5``), loaded when a score is first needed.

    It asks in the form ``premise: … hypothesis: …``, the whole document at once, as the fitted thresholds had it.

    Args:
        model_name: a hub's name or a directory; the default is pinned.
        device: None finds one out.
        max_input_length: tokens of one prompt; a longer one is read in windows (``too_long="truncate"``: its end cut).
        threshold: in [0, 1], for ``verify``.
        settings: other arguments of ``MiniCheckFlanT5Scorer``.
    """

    def __init__(
        self,
        model_name: str = _MINICHECK[0],
        device: str | None = None,
        max_input_length: int = 2048,
        threshold: float = 0.5,
        **settings: Any,
    ) -> None:
        from verifier.scorers.minicheck_flan_t5 import MiniCheckFlanT5Scorer

        published = {
            "revision": _MINICHECK[1] if model_name == _MINICHECK[0] else None,
            "device": device or "auto",
            "max_length": max_input_length,
            "serialization": "premise_hypothesis",
            "packing": "sentences",
        }
        super().__init__(partial(MiniCheckFlanT5Scorer, model_name, **published | settings), threshold)


class LLMJudgeVerifier(NLIVerifier):
    """A chat model as judge (``verifier.scorers.llm_judge``), at temperature 0; its unreadable answers are no scores.

    Args:
        model: LiteLLM's identifier.
        max_tokens: the most tokens of an answer.
        max_workers: the most requests in flight.
        num_retries: further tries after a transient failure.
        system_prompt: instructions to the model; None is the scorer's own.
        threshold: in [0, 1], for ``verify``.
        settings: other arguments of ``LlmJudgeScorer``.
    """

    def __init__(
        self,
        model: str = "claude-haiku-4-5-20251001",
        max_tokens: int = 128,
        max_workers: int = 8,
        num_retries: int = 2,
        system_prompt: str | None = None,
        threshold: float = 0.5,
        **settings: Any,
    ) -> None:
        from verifier.scorers.llm_judge import LlmJudgeScorer

        named = {
            "max_tokens": max_tokens,
            "concurrency": max_workers,
            "retries": num_retries,
            "system_prompt": system_prompt,
        }
        super().__init__(partial(LlmJudgeScorer, model, **named | settings), threshold)
