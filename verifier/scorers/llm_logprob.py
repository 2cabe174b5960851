"""The probability of yes: a chat model that answers yes or no, read from its token probabilities."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Any

from verifier.errors import ConfigurationError
from verifier.protocol import PairError
from verifier.scorers.chat import unscored
from verifier.scorers.judgment import read_judgment
from verifier.scorers.llm import ChatScorer

YES_NO_PROMPT = (
    "You check claims against documents. Answer Yes if the document establishes everything that the claim says, and"
    " No otherwise. Answer with that one word and nothing else."
)
_TOP_LOGPROBS = 20  # the most that the API gives


@dataclass(eq=False)
class LlmLogprobScorer(ChatScorer):
    """Support p(yes) / (p(yes) + p(no)) from the first token of an answer, for endpoints that give logprobs.

    A word's probability is summed over the listed tokens (up to 20) that equal one of its spellings after
    ``strip().casefold()``; a token that is not listed counts as 0. Where the endpoint gives no logprobs, or neither
    word is among them, the text decides: exactly one of the words is 1.0 or 0.0, a judge's JSON answer what
    ``read_judgment`` says. Any other text is ``no_logprobs`` without logprobs and ``unreadable_answer`` with them.

    The question is plain text, as models trained for it expect, so a passage can pose as the claim.

    Args (beside those of ``ChatScorer``):
        max_tokens: 1 by default; a fallback to JSON answers needs more.
        user_prompt: the question, with ``{premise}`` and ``{hypothesis}`` where the texts go.
        yes_words: spellings of the answer that supports.
        no_words: spellings of the other.
    """

    max_tokens: int = 1
    user_prompt: str = "Document: {premise}\nClaim: {hypothesis}"
    yes_words: Sequence[str] = ("yes",)
    no_words: Sequence[str] = ("no",)

    default_prompt = YES_NO_PROMPT

    def _question(self, premise: str, hypothesis: str) -> str:
        return self.user_prompt.format(premise=premise, hypothesis=hypothesis)

    def _options(self) -> Mapping[str, Any]:
        return {"logprobs": True, "top_logprobs": _TOP_LOGPROBS}

    def _support(self, choice: Any) -> float | PairError:
        tokens = list(_first_token(choice))
        yes, no = (_probability(tokens, words) for words in (self.yes_words, self.no_words))
        if math.isnan(yes + no):
            return unscored("unreadable_answer", "a token probability is not a number")
        if yes + no > 0:
            return yes / (yes + no)
        text = choice.message.content or ""
        word = _plain(text)
        if not word:
            return unscored("empty_answer", "the answer has neither a text nor a yes or no among its tokens")
        if word in map(_plain, self.yes_words):
            return 1.0
        if word in map(_plain, self.no_words):
            return 0.0
        support = read_judgment(text)
        if support is None and not tokens:
            return unscored(
                "no_logprobs", "the endpoint gives no token probabilities and the text is neither yes nor no"
            )
        return self._unreadable(text, choice) if support is None else support

    def _check(self) -> None:
        super()._check()
        if isinstance(self.yes_words, str) or isinstance(self.no_words, str):
            raise ConfigurationError("scorer.yes_words and scorer.no_words must be lists")
        yes, no = ({_plain(word) for word in words} for words in (self.yes_words, self.no_words))
        if not yes or not no or yes & no or "" in yes | no:
            raise ConfigurationError(
                "scorer.yes_words and scorer.no_words must be two lists of words that have none in common"
            )
        try:
            fields = sorted(name for _, name, _, _ in Formatter().parse(self.user_prompt) if name is not None)
        except ValueError:
            fields = []
        if fields != ["hypothesis", "premise"]:
            raise ConfigurationError(
                "scorer.user_prompt must hold {premise} and {hypothesis} once each, and other braces doubled"
            )


def _plain(text: str) -> str:
    return text.strip().casefold()


def _first_token(choice: Any) -> Iterator[tuple[str, float]]:
    """The listed candidates for the first token with their probabilities; nothing where there are none to read."""
    content = getattr(getattr(choice, "logprobs", None), "content", None) or []
    for token in content[:1]:
        candidates = {item.token: item.logprob for item in [token, *(token.top_logprobs or [])]}
        for name, logprob in candidates.items():
            # Endpoints round: a certain token can come with a logprob a little above 0.
            yield name, math.exp(min(logprob, 0.0))


def _probability(tokens: Sequence[tuple[str, float]], words: Sequence[str]) -> float:
    spellings = {_plain(word) for word in words}
    return sum(probability for token, probability in tokens if _plain(token) in spellings)
