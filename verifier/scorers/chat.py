"""One way to call a chat model through LiteLLM: retried, bounded in flight, counted, and showing no key."""

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, TypeVar
from urllib.parse import urlsplit

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_exponential, wait_random

from verifier.errors import ConfigurationError, VerificationError
from verifier.protocol import PairError
from verifier.scorers.llm_failures import REFUSED, CallFailed, excerpt, failure

_LOGGERS = ("LiteLLM", "LiteLLM Proxy", "LiteLLM Router", "openai", "httpx", "httpcore")

Question = TypeVar("Question")
Answer = TypeVar("Answer")


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
class ChatClient:
    """A chat model behind any endpoint that LiteLLM can speak to, at temperature 0; whoever asks one builds on this.

    Args:
        model: LiteLLM's identifier, ``provider/name``; for an OpenAI-compatible endpoint ``openai/name`` (wants a
            key) or ``hosted_vllm/name``.
        revision: what the user knows of the model's version; recorded, not sent.
        api_base: the endpoint; None is the provider's own.
        api_key_env: the environment variable that holds the key; None is LiteLLM's own rule for the provider. The
            key is read at each call, kept nowhere and shown in no message.
        system_prompt: instructions to the model; None is the class's own, ``default_prompt``.
        max_tokens: the most tokens of an answer.
        concurrency: the most requests in flight.
        timeout: seconds of silence after which a request is given up.
        retries: further tries after a timeout, a broken connection, a 429 or a 5xx.
        backoff: seconds before the first retry; doubled for each further one, plus up to as much at random, or what
            the endpoint's Retry-After asks for where that is more.
        backoff_max: the most seconds before a retry, Retry-After included.

    Attributes:
        group: the configuration group that errors name.
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

    group: ClassVar[str] = "scorer"
    default_prompt: ClassVar[str] = ""

    def __post_init__(self) -> None:
        self._check()
        self.calls = self.retried = self.prompt_tokens = self.completion_tokens = 0
        self._answered = False
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(self.concurrency, thread_name_prefix="chat")
        self._backoff = wait_exponential(multiplier=self.backoff, max=self.backoff_max) + wait_random(0, self.backoff)

    def _conversation(self, question: str) -> list[dict[str, str]]:
        return [
            {"role": "system", "content": self.default_prompt if self.system_prompt is None else self.system_prompt},
            {"role": "user", "content": question},
        ]

    def _options(self) -> Mapping[str, Any]:
        """What a request carries beside the messages."""
        return {}

    def _ask_all(
        self, questions: Sequence[Question], ask: Callable[[Question], Answer | PairError]
    ) -> list[Answer | PairError]:
        """``ask`` of every question, ``concurrency`` at once.

        Raises VerificationError where the endpoint refuses what every later call would bring too: the key, the
        model, or each of the requests.
        """
        futures = [self._pool.submit(ask, question) for question in questions]
        done, waiting = wait(futures, return_when=FIRST_EXCEPTION)
        for future in waiting:
            future.cancel()
        _raise_any(done)
        outcomes = [future.result() for future in futures]
        refused = [outcome for outcome in outcomes if isinstance(outcome, PairError) and outcome.code == REFUSED]
        if refused and len(refused) == len(outcomes) and not self._answered:
            advice = f"check {self.group}.model and the settings"
            raise VerificationError(f"{refused[0].message}, and every other one: {advice}")
        return outcomes

    def _choice(self, messages: list[dict[str, str]]) -> Any:
        """The first choice of the answer, or a PairError: no answer after all retries, or one without choices."""
        retrying = Retrying(
            stop=stop_after_attempt(1 + self.retries),
            wait=self._wait,
            retry=retry_if_exception(lambda error: isinstance(error, CallFailed) and error.transient),
            before_sleep=lambda _: self._count(retried=1),
            reraise=True,
        )
        try:
            choices = retrying(self._call, messages)
        except CallFailed as failed:
            return failed.error
        return choices[0] if choices else unscored("empty_answer", "the answer has no choices")

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
            failed = failure(error, self.api_key_env, self.group)
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
                raise ConfigurationError(f"{self.group}.{name} is {getattr(self, name)}: at least {least} expected")
        if self.timeout <= 0:
            raise ConfigurationError(f"{self.group}.timeout is {self.timeout}: more than 0 seconds expected")
        if self.api_key_env and not os.environ.get(self.api_key_env):
            raise ConfigurationError(
                f"the environment variable {self.api_key_env} is not set: put the API key there,"
                f" or name another one in {self.group}.api_key_env"
            )
        key = os.environ.get(self.api_key_env, "") if self.api_key_env else ""
        if not (key.isascii() and key.isprintable()):
            raise ConfigurationError(
                f"the environment variable {self.api_key_env} holds characters that no key has, such as a line end"
            )
        if self.api_base and ("@" in urlsplit(self.api_base).netloc or urlsplit(self.api_base).query):
            raise ConfigurationError(
                f"{self.group}.api_base holds a password or a query, which would be written down:"
                f" put a key into the variable of {self.group}.api_key_env"
            )
        if not _names_provider(self.model, self.api_base):
            raise ConfigurationError(
                f"{self.group}.model is {self.model}, which names no provider that LiteLLM knows: write provider/name,"
                " for an OpenAI-compatible endpoint openai/name or hosted_vllm/name"
            )


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


def _raise_any(futures: set[Future[Any]]) -> None:
    for future in futures:
        if (error := future.exception()) is not None:
            raise error
