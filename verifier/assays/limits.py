"""The registered input limit: an input that is too long ends a run before any prediction."""

from collections.abc import Callable, Sequence
from typing import Any

from verifier.assays.registration import InputLimit
from verifier.errors import ConfigurationError
from verifier.records import Claim
from verifier.search.premises import premise

_COUNTS: dict[str, Callable[[str], int]] = {"characters": len, "words": lambda text: len(text.split())}


def check_inputs(
    claims: Sequence[Claim],
    method: str,
    policy: Any,
    limit: InputLimit | None,
    count_tokens: Callable[[str], int] | None = None,
) -> None:
    """Raise ConfigurationError for a claim whose longest possible input is beyond the limit.

    That is the claim, a line end, and the longest passages that the policy may put together: where the method searches
    groups the premise of ``max_group_size`` of them, one where it reads each passage alone, else all, joined by line
    ends.
    """
    if limit is None:
        return
    count = _COUNTS.get(limit.unit, count_tokens)
    if count is None:
        raise ConfigurationError("the input limit is in tokens: only a scorer with a tokenizer can be held to it")
    for claim in claims:
        texts = sorted((item.text for item in claim.evidence), key=count, reverse=True)
        size = count(f"{_longest(texts, method, policy)}\n{claim.claim}" if texts else claim.claim)
        if size > limit.maximum:
            raise ConfigurationError(
                f"the claim {claim.claim_id!r} can need {size} {limit.unit} of input and {limit.maximum} are"
                " registered: nothing was scored"
            )


def _longest(texts: Sequence[str], method: str, policy: Any) -> str:
    """The longest premise of these passages, which come longest first."""
    if method == "groups" or (method == "grounding" and policy.premise == "groups"):
        return premise(texts[: min(policy.max_group_size, policy.group_candidate_limit)])
    return "\n".join(texts) if method == "grounding" and policy.premise != "each" else texts[0]
