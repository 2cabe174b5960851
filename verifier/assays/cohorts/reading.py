"""What the loaders share: JSON lines as objects, and bad rows as configuration errors that name their place."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from verifier.errors import ConfigurationError, InputError
from verifier.pipeline.sources import MAX_ROW_BYTES
from verifier.pipeline.validation import parse_object, shown, validated_claim
from verifier.records import Claim, Status

T = TypeVar("T")


@dataclass(frozen=True)
class Loaded:
    """All claims of a data set, and how many rows of its files they were made of."""

    rows: int
    claims: Sequence[Claim]


def read_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSON-lines file with their line numbers from 1; blank lines are passed over."""
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(iter(lambda: lines.readline(MAX_ROW_BYTES + 1), b""), 1):
                if len(line) > MAX_ROW_BYTES:
                    raise ConfigurationError(f"{path}:{number}: the row is longer than {MAX_ROW_BYTES >> 20} MiB")
                if line.strip():
                    yield number, at(path, number, parse_object, line.strip())
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}: check the path") from error


def at(path: Path, number: int | str, make: Callable[..., T], *arguments: Any) -> T:
    """``make(*arguments)``, an InputError turned into a ConfigurationError that names file and row."""
    try:
        return make(*arguments)
    except InputError as error:
        raise ConfigurationError(f"{path}:{number}: {error} ({error.code})") from error


def claim_of(**fields: Any) -> Claim:
    """A validated claim; InputError for empty or wrong fields."""
    return validated_claim(fields)


def status_of(label: Any, known: Mapping[Any, Status]) -> str:
    """The expected status of a data set's label; InputError for one that it does not have."""
    if not isinstance(label, int | float | str) or isinstance(label, bool) or label not in known:
        names = ", ".join(str(name) for name in known)
        raise InputError("unknown_label", f"the label is {shown(label)}: known are {names}")
    return known[label].value


def unique(claims: Sequence[Claim], path: Path) -> Sequence[Claim]:
    """The claims; ConfigurationError where an id stands twice."""
    seen: set[str] = set()
    for claim in claims:
        if claim.claim_id in seen:
            raise ConfigurationError(f"{path} has the claim id {claim.claim_id!r} twice")
        seen.add(claim.claim_id)
    return claims
