"""What became of one claim of a cohort, in the form that gates, comparisons and result files share."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from verifier.protocol import Outcome
from verifier.records import Claim, Status
from verifier.results import pair_row, read_results

VALUES = ("entailment", "contradiction", "neutral", "support", "cosine", "lexical")
"""Names of the raw scores that are kept, of whatever kind the method asks for."""


class Score(BaseModel):
    """The raw scores of one pair: ``values`` by name, each as the model gave it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str
    references: tuple[str, ...]
    premise_sha256: str
    hypothesis_sha256: str
    member: str | None = None
    window: int = 0
    values: dict[str, float]


class CaseResult(BaseModel):
    """What became of one claim.

    Attributes:
        case_id: the claim's id.
        label: its expected status, None where there is none.
        category: its category; of WiCE claims the label of the data set.
        outcome: ``decided``; ``unscored`` and ``rejected`` claims have no status.
        status: of a decided claim.
        support: what was compared with the threshold, where the method has one such number.
        model_called: whether any pair was scored for it.
        evaluation_id, result_sha256: digests of the record, None without one.
        scores: every scored pair, in the order in which the claim asked for them.
        error: why it is not decided.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    case_id: str
    label: str | None = None
    category: str | None = None
    outcome: Literal["decided", "unscored", "rejected"] = "decided"
    status: Status | None = None
    support: float | None = None
    model_called: bool = False
    evaluation_id: str | None = None
    result_sha256: str | None = None
    scores: tuple[Score, ...] = ()
    error: str | None = None

    @property
    def as_expected(self) -> bool:
        """Whether it was decided as its label says."""
        return self.status is not None and self.status == self.label


def case_of(claim: Claim, outcome: Outcome) -> CaseResult:
    """The case of a claim that a method has decided, or has not."""
    record, error = outcome.verification, outcome.error
    decided = record is not None and error is None
    return CaseResult(
        case_id=claim.claim_id,
        label=claim.label,
        category=claim.category,
        outcome=error.outcome if error else "decided",
        status=record.status if record and decided else None,
        support=outcome.support,
        model_called=bool(outcome.pairs),
        evaluation_id=record.evaluation_id if record and decided else None,
        result_sha256=record.result_sha256 if record and decided else None,
        scores=tuple(_score(pair_row(pair)) for pair in outcome.pairs),
        error=f"{error.code}: {error.message}" if error else None,
    )


def cases_of_run(run_dir: str) -> list[CaseResult]:
    """The cases of a finished run directory, by row_id."""
    return [_case_of_row(row) for row in read_results(run_dir).iter_rows(named=True)]


def labelled(case: CaseResult, claim: Claim) -> CaseResult:
    """The case with label and category of its claim."""
    return case.model_copy(update={"label": claim.label, "category": claim.category})


def unlabelled(claims: Sequence[Claim]) -> list[Claim]:
    """The claims without label and category, so that whatever decides them cannot have looked."""
    return [
        Claim(
            claim.claim_id,
            claim.claim,
            claim.evidence,
            claim.requires_complete_set,
            document_id=claim.document_id,
            subclaims=claim.subclaims,
        )
        for claim in claims
    ]


def _case_of_row(row: Mapping[str, Any]) -> CaseResult:
    decided = row["outcome"] == "decided"
    record = row["record"] if decided else None
    return CaseResult(
        case_id=row["claim_id"],
        label=row["label"],
        category=row["category"],
        outcome=row["outcome"],
        status=Status(row["status"]) if decided else None,
        support=row["support"],
        model_called=bool(row["pairs"]),
        evaluation_id=record["evaluation_id"] if record else None,
        result_sha256=record["result_sha256"] if record else None,
        scores=tuple(_score(pair) for pair in row["pairs"] or ()),
        error=f"{row['error_code']}: {row['error_message']}" if row["error_code"] else None,
    )


def _score(pair: Mapping[str, Any]) -> Score:
    return Score(
        kind=pair["kind"],
        references=tuple(pair["references"]),
        premise_sha256=pair["premise_sha256"],
        hypothesis_sha256=pair["hypothesis_sha256"],
        member=pair["member"],
        window=pair["window"],
        values={name: float(pair[name]) for name in VALUES if pair[name] is not None},
    )
