"""A cohort as a file that the pipeline reads."""

from collections.abc import Iterable
from pathlib import Path

from verifier.digests import canonical_json
from verifier.records import Claim
from verifier.schemas import work_row


def write_claims(claims: Iterable[Claim], path: Path) -> Path:
    """Write claims as JSON lines of the input form ``claims``, with all that is known of them; return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for claim in claims:
            row = work_row(0, claim)
            del row["row_id"]
            file.write(canonical_json(row) + "\n")
    return path
