"""What the scorers that ask a chat model share: pairs become questions, answers become support."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from verifier.digests import sha256_text
from verifier.protocol import PairError, Scores
from verifier.scorers.base import raise_first
from verifier.scorers.chat import ChatClient, quiet_litellm
from verifier.scorers.sizing import Sizer, Sizes


@dataclass(eq=False)
class ChatScorer(ChatClient, ABC):
    """Support in [0, 1] from a chat model behind any endpoint that LiteLLM can speak to, at temperature 0.

    An empty or blank premise or hypothesis scores 0.0 and is not asked; a distinct pair is asked once a call. A
    failure is never a score: a pair is ``unscored`` with the code ``unreadable_answer``, ``empty_answer``,
    ``no_logprobs``, ``timeout``, ``rate_limited``, ``server_error`` or ``connection_failed``, and ``rejected`` with
    ``pair_too_long`` or ``refused_request`` where the endpoint does not take this pair.

    Arguments, attributes and errors are those of ``ChatClient``; ``dtype`` is ``remote``.
    """

    dtype = "remote"

    @classmethod
    def identify(cls, *args: Any, **settings: Any) -> dict[str, str]:
        """Model, revision and the digest of the prompt; raises what the constructor would, asks no endpoint."""
        scorer = cls(*args, **settings)
        prompt = "\n".join(message["content"] for message in scorer._messages("", ""))
        return {"model": scorer.model, "revision": scorer.revision, "prompt_sha256": sha256_text(prompt)}

    @classmethod
    def sizer(cls, *args: Any, **settings: Any) -> Sizer:
        """Counts the tokens of the prompts, with the model's tokenizer where LiteLLM has it, else with a common one."""
        return _PromptSizer(cls(*args, **settings))

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Support of (premise, hypothesis) pairs in their order; VerificationError where one has no score."""
        scores = self.score_detailed(pairs)
        raise_first(scores.errors)
        values: list[float] = scores.values.tolist()
        return values

    def score_detailed(self, pairs: Sequence[tuple[str, str]]) -> Scores:
        """Like ``score_pairs``, values of shape (n,); a pair with an error has the value NaN.

        Raises VerificationError where the endpoint refuses what every later call would bring too: the key, the
        model, or each of the requests.
        """
        asked = list(dict.fromkeys(pair for pair in pairs if pair[0].strip() and pair[1].strip()))
        answers = dict(zip(asked, self._ask_all(asked, self._ask), strict=True))
        outcomes = [answers.get(pair, 0.0) for pair in pairs]
        errors = {index: outcome for index, outcome in enumerate(outcomes) if isinstance(outcome, PairError)}
        values = [np.nan if isinstance(outcome, PairError) else outcome for outcome in outcomes]
        whole = Scores.whole(np.array(values, dtype=np.float64))
        return Scores(whole.values, whole.windows, whole.window, whole.truncated, errors)

    def _messages(self, premise: str, hypothesis: str) -> list[dict[str, str]]:
        return self._conversation(self._question(premise, hypothesis))

    @abstractmethod
    def _question(self, premise: str, hypothesis: str) -> str:
        """What the user's message says."""

    @abstractmethod
    def _support(self, choice: Any) -> float | PairError:
        """What an answer says."""

    def _ask(self, pair: tuple[str, str]) -> float | PairError:
        choice = self._choice(self._messages(*pair))
        return choice if isinstance(choice, PairError) else self._support(choice)


@dataclass
class _PromptSizer:
    scorer: ChatScorer
    flops_per_token: float | None = None

    def sizes(self, pairs: Sequence[tuple[str, str]]) -> Sizes:
        asked = [pair for pair in pairs if pair[0].strip() and pair[1].strip()]
        count, model = quiet_litellm().token_counter, self.scorer.model
        tokens = [count(model=model, messages=self.scorer._messages(*pair)) for pair in asked]
        return Sizes(np.array(tokens, dtype=np.int64), np.ones(len(pairs), np.int32), 0)
