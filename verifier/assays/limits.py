"""The registered input limit: an input that is too long ends a run before any prediction."""

from collections.abc import Callable, Sequence
from typing import Any

from verifier.assays.registration import InputLimit
from verifier.errors import ConfigurationError
from verifier.records import Claim

_COUNTS: dict[str, Callable[[str], int]] = {"characters": len, "words": lambda text: len(text.split())}


def check_inputs(
    claims: Sequence[Claim],
    method: str,
    policy: Any,
    limit: InputLimit | None,
    count_tokens: Callable[[str], int] | None = None,
) -> None:
    """Raise ConfigurationError for a claim whose longest possible input is beyond the limit.

    That is the claim, a line end, and the longest passages that the policy may put together, joined by line ends:
    ``max_group_size`` of them where the method searches groups, one where it reads each passage alone, else all.
    """
    if limit is None:
        return
    count = _COUNTS.get(limit.unit, count_tokens)
    if count is None:
        raise ConfigurationError("the input limit is in tokens: only a scorer with a tokenizer can be held to it")
    together = _together(method, policy)
    for claim in claims:
        passages = sorted((item.text for item in claim.evidence), key=count, reverse=True)[:together]
        size = count("\n".join([*passages, claim.claim]))
        if size > limit.maximum:
            raise ConfigurationError(
                f"the claim {claim.claim_id!r} can need {size} {limit.unit} of input and {limit.maximum} are"
                " registered: nothing was scored"
            )


def _together(method: str, policy: Any) -> int | None:
    """How many passages are read together at the most, None for all."""
    if method == "groups" or (method == "grounding" and policy.premise == "groups"):
        return int(policy.max_group_size)
    return None if method == "grounding" and policy.premise != "each" else 1
