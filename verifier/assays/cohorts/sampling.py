"""Deterministic samples: which claims are drawn depends on their ids alone, so anyone can draw them again."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from verifier.assays.registration import Sampler
from verifier.digests import sha256_text
from verifier.errors import ConfigurationError
from verifier.records import Claim


def sample(claims: Iterable[Claim], sampler: Sampler) -> tuple[str, ...]:
    """The ids of a sample, in the order of the claims: see ``Sampler`` for the rule.

    The category of a claim is the data set that it came from. ConfigurationError where a stratum has too few claims.
    """
    strata: dict[tuple[str, str], list[str]] = defaultdict(list)
    order: dict[str, int] = {}
    for claim in claims:
        strata[claim.category or "", claim.label or ""].append(claim.claim_id)
        order[claim.claim_id] = len(order)
    chosen: list[str] = []
    for (category, label), ids in sorted(strata.items()):
        if len(ids) < sampler.per_stratum:
            raise ConfigurationError(
                f"the category {category!r} has {len(ids)} claims with the label {label!r} to draw from"
                f" and the sampler takes {sampler.per_stratum}"
            )
        chosen += first_by_digest(ids, sampler.seed, sampler.split)[: sampler.per_stratum]
    return tuple(sorted(chosen, key=order.__getitem__))


def first_by_digest(ids: Sequence[str], seed: str, split: str) -> list[str]:
    """Ids ordered by the sha256 of seed, NUL, split, NUL, id."""
    return sorted(ids, key=lambda name: sha256_text(f"{seed}\0{split}\0{name}"))
