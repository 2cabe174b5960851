"""Opening a sealed cohort: its calibration is judged here, from labels that are read here, and put on record."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from verifier.assays.cases import CaseResult
from verifier.assays.cohorts.identity import identity_of
from verifier.assays.gates import GateTable, judge
from verifier.assays.ledger import Entry, append_after, of_kind, read_ledger
from verifier.assays.methods import built_policy
from verifier.assays.opening import open_cohort
from verifier.assays.registration import Calibration, Registration
from verifier.assays.sealing import SealedCohort
from verifier.assays.seals import kept_closed
from verifier.digests import sha256_json
from verifier.errors import ConfigurationError
from verifier.records import Claim, Status


def record_calibration(
    registration: Registration,
    statuses: Mapping[str, str | None],
    ledger: Path,
    chosen: Mapping[str, Any] | None = None,
    paths: Mapping[str, Path] | None = None,
) -> GateTable:
    """Judge a calibration by the registered gates and record whether it passed; it happens once.

    The labels are those of the registered calibration cohort, so that what is handed in are decisions and no figures.
    A registration whose calibration has failed never opens its cohort: another one has to be registered, with the
    same calibration cohort and every gate, none of them weaker (see ``verifier.assays.seals``).

    Args:
        registration: of the sealed cohort.
        statuses: claim id to status, None for no decision, of exactly the claims of the calibration cohort; where a
            threshold was chosen on them, the out-of-fold ones.
        ledger: the ledger's path.
        chosen: the fields of the policy that the registration leaves to the calibration, with their values.
        paths: where the calibration cohort's files lie now, by role.

    Raises:
        ConfigurationError: not registered, not sealed, calibrated before, other claims, or other fields.
    """
    entries = read_ledger(ledger)
    calibration = _calibration(registration, entries)
    digest = registration.digest()
    if of_kind(entries, "calibration", digest):
        raise ConfigurationError(f"the registration {digest[:12]} was calibrated before: register another one")
    chosen = dict(chosen or {})
    if set(chosen) != set(calibration.chooses):
        raise ConfigurationError(
            f"the calibration chooses {', '.join(sorted(chosen)) or 'nothing'},"
            f" registered is {', '.join(sorted(calibration.chooses)) or 'nothing'}"
        )
    built_policy(registration.method, registration.policy | chosen)
    claims = open_cohort(calibration.cohort, entries, paths)
    table = judge(calibration.gates, _cases(claims, statuses))
    body = {
        "registration": digest,
        "passed": table.passed,
        "gates": table.model_dump(mode="json"),
        "chosen": chosen,
        "cohort_sha256": calibration.cohort.content_digest(),
        "statuses_sha256": sha256_json(dict(statuses)),
    }
    seen = {"registration": digest, "cohort": calibration.cohort.name, "identities": [identity_of(c) for c in claims]}
    append_after(ledger, entries, [("observation", seen), ("calibration", body)])
    return table


def unlock(registration: Registration, ledger: Path) -> None:
    """Record that a sealed cohort is open.

    Raises SealedCohort unless the registration's calibration has passed, and where the calibration of another one on
    the same claims has failed by gates that this one lacks, holds with weaker bounds or on another cohort.
    """
    entries = read_ledger(ledger)
    _calibration(registration, entries)
    digest = registration.digest()
    recorded = of_kind(entries, "calibration", digest)
    if not recorded:
        raise SealedCohort(
            f"the cohort {registration.cohort.name} stays sealed: no calibration of the registration {digest[:12]} is"
            " recorded"
        )
    if not all(entry.body["passed"] for entry in recorded):
        failed = [name for name, gate in recorded[0].body["gates"]["results"].items() if not gate["passed"]]
        raise SealedCohort(
            f"the cohort {registration.cohort.name} stays sealed: the calibration of the registration {digest[:12]}"
            f" has failed ({', '.join(failed)})"
        )
    for seal in kept_closed(digest, entries):
        raise SealedCohort(
            f"the cohort {registration.cohort.name} stays sealed: the calibration of the registration"
            f" {seal.registration[:12]} on the same claims has failed, and this one lacks some of its gates, has weaker"
            " bounds or another calibration cohort: register every gate with a bound at least as strict"
        )
    if not of_kind(entries, "unlock", digest):
        append_after(ledger, entries, [("unlock", {"registration": digest, "cohort": registration.cohort.name})])


def check_unlocked(registration: Registration, entries: Sequence[Entry]) -> None:
    """Raise SealedCohort for a sealed registration whose own unlock is not recorded."""
    digest = registration.digest()
    if registration.sealed and not of_kind(entries, "unlock", digest):
        raise SealedCohort(
            f"the cohort {registration.cohort.name} is sealed: the registration {digest[:12]} runs once its calibration"
            " has passed and its unlock is recorded"
        )


def check_registered(registration: Registration, entries: Sequence[Entry]) -> None:
    """Raise ConfigurationError where the ledger does not have this registration, as it is, or lost what came before."""
    digest = registration.digest()
    if not of_kind(entries, "registration", digest):
        raise ConfigurationError(
            f"the ledger has no registration {digest}: it was edited since, or never registered with this ledger"
        )
    head = registration.ledger_head
    if head is not None and head not in {entry.sha256 for entry in entries}:
        raise ConfigurationError(f"the ledger lacks the entry {head[:12]} that stood in it at registration: restore it")


def chosen_policy(registration: Registration, entries: Sequence[Entry]) -> Any:
    """The registered policy with what a passed calibration has chosen."""
    passed = [e for e in of_kind(entries, "calibration", registration.digest()) if e.body["passed"]]
    chosen = passed[0].body["chosen"] if passed else {}
    return built_policy(registration.method, {**registration.policy, **chosen})


def _calibration(registration: Registration, entries: Sequence[Entry]) -> Calibration:
    check_registered(registration, entries)
    if not registration.sealed or registration.calibration is None:
        raise ConfigurationError(f"the registration {registration.name} seals no cohort: there is nothing to unlock")
    return registration.calibration


def _cases(claims: Sequence[Claim], statuses: Mapping[str, str | None]) -> list[CaseResult]:
    ids = {claim.claim_id for claim in claims}
    for name in sorted(ids ^ set(statuses)):
        what = "has no decision in" if name in ids else "is no claim of"
        raise ConfigurationError(f"{name!r} {what} the calibration: decisions on exactly its cohort's claims expected")
    for name, status in statuses.items():
        if status is not None and status not in list(Status):
            raise ConfigurationError(f"the status of {name!r} is {status!r}: known are {', '.join(Status)}")
    return [_case(claim, statuses[claim.claim_id]) for claim in claims]


def _case(claim: Claim, status: str | None) -> CaseResult:
    return CaseResult(
        case_id=claim.claim_id,
        label=claim.label,
        category=claim.category,
        outcome="decided" if status else "unscored",
        status=Status(status) if status else None,
    )
