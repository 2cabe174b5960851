"""What the scorers that ask a chat model share: one call through LiteLLM, retried, bounded, counted."""

import logging
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_exponential, wait_random

from verifier.digests import sha256_text
from verifier.errors import ConfigurationError, VerificationError
from verifier.protocol import PairError, Scores
from verifier.scorers.base import raise_first
from verifier.scorers.llm_failures import REFUSED, CallFailed, excerpt, failure
from verifier.scorers.sizing import Sizer, Sizes

_LOGGERS = ("LiteLLM", "LiteLLM Proxy", "LiteLLM Router", "openai", "httpx", "httpcore")


@cache
def quiet_litellm() -> Any:
    """The ``litellm`` module, imported on first use as that takes seconds; it fetches, logs and prints nothing.

    The loggers of the HTTP clients below it are silenced too: at their debug level they show request headers.
    """
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm

    litellm.suppress_debug_info = True
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return litellm


@dataclass(eq=False)
class ChatScorer(ABC):
    """Support in [0, 1] from a chat model behind any endpoint that LiteLLM can speak to, at temperature 0.

    An empty or blank premise or hypothesis scores 0.0 and is not asked; a distinct pair is asked once a call. A
    failure is never a score: a pair is ``unscored`` with the code ``unreadable_answer``, ``empty_answer``,
    ``no_logprobs``, ``timeout``, ``rate_limited``, ``server_error`` or ``connection_failed``, and ``rejected`` with
    ``pair_too_long`` or ``refused_request`` where the endpoint does not take this pair.

    Args:
        model: LiteLLM's identifier, ``provider/name``; for an OpenAI-compatible endpoint ``openai/name`` (wants a
            key) or ``hosted_vllm/name``.
        revision: what the user knows of the model's version; recorded, not sent.
        api_base: the endpoint; None is the provider's own.
        api_key_env: the environment variable that holds the key; None is LiteLLM's own rule for the provider. The
            key is read at each call, kept nowhere and shown in no message.
        system_prompt: instructions to the model; None is the scorer's own.
        max_tokens: the most tokens of an answer.
        concurrency: the most requests in flight.
        timeout: seconds of silence after which a request is given up.
        retries: further tries after a timeout, a broken connection, a 429 or a 5xx.
        backoff: seconds before the first retry; doubled for each further one, plus up to as much at random, or what
            the endpoint's Retry-After asks for where that is more.
        backoff_max: the most seconds before a retry, Retry-After included.

    Attributes:
        dtype: ``remote``.
        calls: requests tried so far, retries included.
        retried: those that were retries.
        prompt_tokens, completion_tokens: as the endpoint counted them.

    Raises:
        ConfigurationError: a setting cannot work, its model names no known provider, or the key's variable is unset.
    """

    model: str
    revision: str = "unpinned"
    api_base: str | None = None
    api_key_env: str | None = None
    system_prompt: str | None = None
    max_tokens: int = 128
    concurrency: int = 8
    timeout: float = 60.0
    retries: int = 4
    backoff: float = 1.0
    backoff_max: float = 30.0

    dtype = "remote"
    default_prompt = ""

    def __post_init__(self) -> None:
        self._check()
        self.calls = self.retried = self.prompt_tokens = self.completion_tokens = 0
        self._answered = False
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(self.concurrency, thread_name_prefix="chat")
        self._backoff = wait_exponential(multiplier=self.backoff, max=self.backoff_max) + wait_random(0, self.backoff)

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
        answers = dict(zip(asked, self._ask_all(asked), strict=True))
        outcomes = [answers.get(pair, 0.0) for pair in pairs]
        errors = {index: outcome for index, outcome in enumerate(outcomes) if isinstance(outcome, PairError)}
        values = [np.nan if isinstance(outcome, PairError) else outcome for outcome in outcomes]
        whole = Scores.whole(np.array(values, dtype=np.float64))
        return Scores(whole.values, whole.windows, whole.window, whole.truncated, errors)

    def _messages(self, premise: str, hypothesis: str) -> list[dict[str, str]]:
        return [
            {"role": "system", "content": self.default_prompt if self.system_prompt is None else self.system_prompt},
            {"role": "user", "content": self._question(premise, hypothesis)},
        ]

    @abstractmethod
    def _question(self, premise: str, hypothesis: str) -> str:
        """What the user's message says."""

    def _options(self) -> Mapping[str, Any]:
        """What a request carries beside the messages."""
        return {}

    @abstractmethod
    def _support(self, choice: Any) -> float | PairError:
        """What an answer says."""

    def _ask_all(self, pairs: Sequence[tuple[str, str]]) -> list[float | PairError]:
        futures = [self._pool.submit(self._ask, pair) for pair in pairs]
        done, waiting = wait(futures, return_when=FIRST_EXCEPTION)
        for future in waiting:
            future.cancel()
        _raise_any(done)
        outcomes = [future.result() for future in futures]
        refused = [outcome for outcome in outcomes if isinstance(outcome, PairError) and outcome.code == REFUSED]
        if refused and len(refused) == len(outcomes) and not self._answered:
            raise VerificationError(f"{refused[0].message}, and every other one: check scorer.model and the settings")
        return outcomes

    def _ask(self, pair: tuple[str, str]) -> float | PairError:
        retrying = Retrying(
            stop=stop_after_attempt(1 + self.retries),
            wait=self._wait,
            retry=retry_if_exception(lambda error: isinstance(error, CallFailed) and error.transient),
            before_sleep=lambda _: self._count(retried=1),
            reraise=True,
        )
        try:
            choices = retrying(self._call, self._messages(*pair))
        except CallFailed as failed:
            return failed.error
        return self._support(choices[0]) if choices else unscored("empty_answer", "the answer has no choices")

    def _wait(self, state: RetryCallState) -> float:
        failed = state.outcome.exception() if state.outcome else None
        asked = failed.retry_after if isinstance(failed, CallFailed) else 0.0
        return min(max(asked, self._backoff(state)), self.backoff_max)

    def _call(self, messages: list[dict[str, str]]) -> list[Any]:
        """The choices of one request's answer; CallFailed or VerificationError where there is none."""
        self._count(calls=1)
        try:
            response = quiet_litellm().completion(
                model=self.model,
                messages=messages,
                api_base=self.api_base,
                api_key=os.environ.get(self.api_key_env) if self.api_key_env else None,
                temperature=0,
                max_tokens=self.max_tokens,
                timeout=self.timeout,
                # The retries are ours, so that their number is exact.
                num_retries=0,
                max_retries=0,
                **self._options(),
            )
        except Exception as error:
            failed = failure(error, self.api_key_env)
        else:
            usage = getattr(response, "usage", None)
            tokens = {name: getattr(usage, name, None) or 0 for name in ("prompt_tokens", "completion_tokens")}
            self._count(**tokens)
            self._answered = True
            return list(response.choices)
        # Outside of the handler: a context would carry the server's text, and with it perhaps the key.
        raise failed

    def _count(self, **more: int) -> None:
        with self._lock:
            for name, number in more.items():
                setattr(self, name, getattr(self, name) + number)

    def _unreadable(self, text: str, choice: Any) -> PairError:
        cut = f" and ends at max_tokens, {self.max_tokens}" if choice.finish_reason == "length" else ""
        return unscored("unreadable_answer", f"the answer cannot be read{cut}: {excerpt(text, self.api_key_env)}")

    def _check(self) -> None:
        """Raise ConfigurationError for settings that cannot work."""
        for name, least in {"concurrency": 1, "max_tokens": 1, "retries": 0, "backoff": 0, "backoff_max": 0}.items():
            if getattr(self, name) < least:
                raise ConfigurationError(f"scorer.{name} is {getattr(self, name)}: at least {least} expected")
        if self.timeout <= 0:
            raise ConfigurationError(f"scorer.timeout is {self.timeout}: more than 0 seconds expected")
        if self.api_key_env and not os.environ.get(self.api_key_env):
            raise ConfigurationError(
                f"the environment variable {self.api_key_env} is not set: put the API key there,"
                " or name another one in scorer.api_key_env"
            )
        if self.api_base and "@" in urlsplit(self.api_base).netloc:
            raise ConfigurationError("scorer.api_base holds a password: put it into the variable of scorer.api_key_env")
        if not _names_provider(self.model, self.api_base):
            raise ConfigurationError(
                f"scorer.model is {self.model}, which names no provider that LiteLLM knows: write provider/name,"
                " for an OpenAI-compatible endpoint openai/name or hosted_vllm/name"
            )


@dataclass
class _PromptSizer:
    scorer: ChatScorer
    flops_per_token: float | None = None

    def sizes(self, pairs: Sequence[tuple[str, str]]) -> Sizes:
        asked = [pair for pair in pairs if pair[0].strip() and pair[1].strip()]
        count, model = quiet_litellm().token_counter, self.scorer.model
        tokens = [count(model=model, messages=self.scorer._messages(*pair)) for pair in asked]
        return Sizes(np.array(tokens, dtype=np.int64), np.ones(len(pairs), np.int32), 0)


def _names_provider(model: str, api_base: str | None) -> bool:
    litellm = quiet_litellm()
    try:
        litellm.get_llm_provider(model, api_base=api_base)
    except Exception:  # of LiteLLM's own many kinds
        return False
    return True


def unscored(code: str, message: str) -> PairError:
    """A pair whose answer is no score."""
    return PairError("unscored", code, message)


def _raise_any(futures: set[Future[float | PairError]]) -> None:
    for future in futures:
        if (error := future.exception()) is not None:
            raise error
