"""Running a registered assay: nothing is scored unless everything is as it was registered."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from verifier.assays.cases import CaseResult, labelled, unlabelled
from verifier.assays.cohorts.identity import identity_of
from verifier.assays.gates import judge
from verifier.assays.ledger import Entry, append_after, now, of_kind, read_ledger
from verifier.assays.limits import check_inputs
from verifier.assays.methods import Execute
from verifier.assays.opening import open_cohort
from verifier.assays.registration import Registration, Scorer
from verifier.assays.results import AssayResult
from verifier.assays.summary import summarize
from verifier.assays.unlocking import check_registered, check_unlocked, chosen_policy
from verifier.errors import ConfigurationError, VerificationError
from verifier.records import Claim


def run_assay(
    registration: Registration,
    execute: Execute,
    scorer: Scorer,
    ledger: Path,
    paths: Mapping[str, Path] | None = None,
    count_tokens: Callable[[str], int] | None = None,
) -> AssayResult:
    """Score the cohort, once all registered digests hold, and judge the result by the registered gates.

    Args:
        registration: as it was read from its file.
        execute: decides the claims; it is given them without labels, and is called last of all.
        scorer: what ``execute`` scores with, by its own identity.
        ledger: the ledger's path. The observation is recorded before anything is scored, so a run that fails midway
            has observed its cohort too.
        paths: where the cohort's files lie now, by role.
        count_tokens: the model's, needed where the input limit is in tokens.

    Raises:
        ConfigurationError: the registration is not in the ledger, or a digest, a shape, the scorer or an input is not
            as registered. SealedCohort where the cohort is sealed.
        VerificationError: ``execute`` did not answer for exactly the claims of the cohort.
    """
    entries = read_ledger(ledger)
    check_registered(registration, entries)
    check_unlocked(registration, entries)
    check_scorer(registration.scorer, scorer)
    policy = chosen_policy(registration, entries)
    claims = open_cohort(registration.cohort, entries, paths)
    check_inputs(claims, registration.method, policy, registration.input_limit, count_tokens)
    observe(registration.digest(), registration.cohort.name, claims, ledger, entries)
    started = now()
    answered = execute(registration.method, policy, unlabelled(claims))
    return judged(registration, policy, in_order(claims, answered), started)


def judged(registration: Registration, policy: Any, cases: Sequence[CaseResult], started_at: str) -> AssayResult:
    """The result of cases under the registered gates."""
    gates = judge(registration.gates, cases)
    return AssayResult(
        name=registration.name,
        registration_sha256=registration.digest(),
        observed=registration.observed,
        started_at=started_at,
        completed_at=now(),
        method=registration.method,
        model=registration.scorer.model,
        revision=registration.scorer.revision,
        policy=policy.model_dump(mode="json"),
        summary=summarize(registration.cohort.form, cases),
        gates=gates,
        exit_status=0 if gates.passed else 1,
        cases=tuple(cases),
    )


def check_scorer(registered: Scorer, given: Scorer) -> None:
    """Raise ConfigurationError where a scorer is not the registered one, naming what differs."""
    ours, theirs = given.model_dump(mode="json"), registered.model_dump(mode="json")
    for group in ("model", "revision", "identity", "settings"):
        if ours[group] == theirs[group]:
            continue
        if isinstance(theirs[group], str):
            raise ConfigurationError(f"the scorer's {group} is {ours[group]}, registered is {theirs[group]}")
        names = sorted(ours[group].keys() | theirs[group].keys())
        name = next(one for one in names if ours[group].get(one) != theirs[group].get(one))
        raise ConfigurationError(
            f"the scorer's {group} {name} is {ours[group].get(name)}, registered is {theirs[group].get(name)}"
        )


def observe(registration: str, cohort: str, claims: Sequence[Claim], ledger: Path, entries: Sequence[Entry]) -> None:
    """Record that the claims are observed, once a registration (or published assay, by the sha256 of its file)."""
    identities = [identity_of(claim) for claim in claims]
    if not any(entry.body["identities"] == identities for entry in of_kind(entries, "observation", registration)):
        body = {"registration": registration, "cohort": cohort, "identities": identities}
        append_after(ledger, entries, [("observation", body)])


def in_order(claims: Sequence[Claim], cases: Sequence[CaseResult]) -> list[CaseResult]:
    """The cases in the order of their claims, with their labels; VerificationError unless each claim has one."""
    by_id = {case.case_id: case for case in cases}
    ids = {claim.claim_id for claim in claims}
    if len(by_id) != len(cases) or by_id.keys() != ids:
        raise VerificationError(f"{len(cases)} cases were answered, of other claims than the {len(ids)} of the cohort")
    return [labelled(by_id[claim.claim_id], claim) for claim in claims]
