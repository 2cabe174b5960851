"""Registering an assay: the cohort's digests, shape and sample are worked out, and everything is put on record."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pydantic
from pydantic import Field, JsonValue

from verifier.assays.cohorts.identity import identity_of
from verifier.assays.cohorts.loading import (
    check_shape,
    checked_digest,
    load_all,
    loader_of,
    shape_of,
)
from verifier.assays.cohorts.sampling import sample
from verifier.assays.gates import Bound
from verifier.assays.ledger import Entry, append_after, head_of, now, of_kind, read_ledger
from verifier.assays.methods import built_policy
from verifier.assays.public_forms import PUBLISHED_COHORTS, read_public_registration
from verifier.assays.registration import (
    Calibration,
    Cohort,
    CohortFile,
    Form,
    InputLimit,
    Part,
    Registration,
    Sampler,
    Scorer,
    Shape,
    first_problem,
    remove_registration,
    write_registration,
)
from verifier.assays.sealing import SealedCohort, observed_identities, refuse_cohort, sealed_identities
from verifier.errors import ConfigurationError
from verifier.records import Text


class CohortForm(Part):
    """A cohort as a user names it: ``files`` and, where they are known, ``sha256`` by role, and the expected shape."""

    name: Text
    form: Form
    files: dict[str, str] = Field(min_length=1)
    sha256: dict[str, str] = Field(default_factory=dict)
    shape: Shape | None = None
    options: dict[str, str] = Field(default_factory=dict)
    sampler: Sampler | None = None


class CalibrationForm(Part):
    """See ``Calibration``."""

    cohort: CohortForm
    gates: dict[str, Bound]
    chooses: tuple[str, ...] = ()


class AssayForm(Part):
    """What a user says to register an assay, see ``Registration``."""

    name: Text
    purpose: Text
    cohort: CohortForm
    method: Text
    policy: dict[str, JsonValue]
    scorer: Scorer
    protocol: dict[str, JsonValue] = Field(default_factory=dict)
    input_limit: InputLimit | None = None
    gates: dict[str, Bound]
    calibration: CalibrationForm | None = None
    sealed: bool = False


def form_of_public(path: Path, scorer: Scorer, claims: Path | None = None) -> AssayForm:
    """The form to register a published assay anew with: its cohort, method, policy, protocol and gates, our scorer.

    ``claims`` is the user's copy of the data set, see ``read_public_registration``.
    """
    public = read_public_registration(path, claims)
    cohort = public.cohort
    return AssayForm(
        name=public.name,
        purpose=public.purpose,
        cohort=CohortForm(
            name=cohort.name,
            form=cohort.form,
            files={role: file.path for role, file in cohort.files.items()},
            sha256=cohort.digests(),
            shape=cohort.shape,
        ),
        method=public.method,
        policy=public.policy,
        scorer=scorer,
        protocol=public.protocol,
        gates=public.gates,
    )


def register(form: AssayForm, ledger: Path, path: Path) -> tuple[Registration, str]:
    """Write the registration to ``path`` and the ledger; return it with its sha256. Nothing is scored.

    The labels of a cohort are read here for its shape and sample, and where it is sealed never again before its
    unlock: a further registration on the same sealed cohort takes both from the first.

    Raises:
        ConfigurationError: a file is not the expected one, the cohort has another shape, a cohort that is to be
            sealed was observed or shares claims with its calibration, or the registration or the ledger cannot be
            written. SealedCohort where the cohort is under a seal and this registration is not to be.
    """
    entries = read_ledger(ledger)
    cohort, identities = resolve(form.cohort, entries, form.sealed)
    observed_by = observers(cohort, identities, entries)
    if form.sealed and observed_by:
        raise ConfigurationError(f"the cohort {cohort.name} was observed by {observed_by[0]}: it cannot be sealed")
    registration = _registration(form, cohort, identities, observed_by, entries)
    digest = write_registration(registration, path)
    body = {
        "registration": digest,
        "name": registration.name,
        "sealed": registration.sealed,
        "cohort": cohort.model_dump(mode="json"),
        "identities": list(identities),
    }
    try:
        append_after(ledger, entries, [("registration", body)])
    except BaseException:
        remove_registration(path)  # what the ledger does not have was not registered
        raise
    return registration, digest


def resolve(form: CohortForm, entries: Sequence[Entry], sealed: bool) -> tuple[Cohort, tuple[str, ...]]:
    """The cohort that a user names, and the identities of its claims, in order; see ``register`` for errors."""
    loader_of(form.form, form.files, form.options)
    files = {
        role: CohortFile(path=path, sha256=checked_digest(Path(path), form.sha256.get(role), f"cohort.files.{role}"))
        for role, path in form.files.items()
    }
    known = _registered_before(form, files, entries) if sealed else None
    if known is not None:
        cohort = Cohort.model_validate(known.body["cohort"]).model_copy(update={"name": form.name, "files": files})
        check_shape(cohort.shape, form.shape or cohort.shape, form.name)
        return cohort, tuple(known.body["identities"])
    fields = {"name": form.name, "form": form.form, "files": files, "options": form.options}
    whole = Cohort(**fields, shape=Shape(claims=0, labels={}))  # type: ignore[arg-type]
    if form.sampler is None:
        refuse_cohort(whole, entries)
    loaded = load_all(whole)
    hidden = sealed_identities(entries)
    identified = [(claim, identity_of(claim)) for claim in loaded.claims]
    if form.sampler is None and any(name in hidden for _, name in identified):
        raise SealedCohort(f"the cohort {form.name} holds claims of a sealed cohort: draw from the others by a sampler")
    selected = None
    if form.sampler is not None:
        left_out = hidden | (observed_identities(entries).keys() if form.sampler.exclude_observed else set())
        fresh = [(claim, name) for claim, name in identified if name not in left_out]
        selected = sample([claim for claim, _ in fresh], form.sampler)
        chosen = set(selected)
        identified = [(claim, name) for claim, name in fresh if claim.claim_id in chosen]
    shape = shape_of(form.form, loaded.rows, [claim for claim, _ in identified])
    check_shape(shape, form.shape or shape, form.name)
    cohort = Cohort(**fields, shape=shape, sampler=form.sampler, selected=selected)  # type: ignore[arg-type]
    return cohort, tuple(name for _, name in identified)


def observers(cohort: Cohort, identities: Sequence[str], entries: Sequence[Entry]) -> tuple[str, ...]:
    """What has observed any of a cohort's claims before: published assays, and registrations by their sha256."""
    published = {PUBLISHED_COHORTS[digest] for digest in cohort.digests().values() if digest in PUBLISHED_COHORTS}
    observed = observed_identities(entries)
    ours = {observed[name] for name in identities if name in observed}
    return (*(f"published:{name}" for name in sorted(published)), *sorted(ours))


def _registration(
    form: AssayForm, cohort: Cohort, identities: Sequence[str], observed_by: tuple[str, ...], entries: Sequence[Entry]
) -> Registration:
    try:
        return Registration(
            name=form.name,
            purpose=form.purpose,
            registered_at=now(),
            cohort=cohort,
            method=form.method,
            policy=built_policy(form.method, form.policy).model_dump(mode="json"),
            scorer=form.scorer,
            protocol=form.protocol,
            input_limit=form.input_limit,
            gates=form.gates,
            calibration=_calibration(form, cohort, identities, entries),
            sealed=form.sealed,
            observed=bool(observed_by),
            observed_by=observed_by,
            ledger_head=head_of(entries),
        )
    except pydantic.ValidationError as error:
        raise ConfigurationError(f"the assay {form.name} cannot be registered: {first_problem(error)}") from error


def _registered_before(form: CohortForm, files: Mapping[str, CohortFile], entries: Sequence[Entry]) -> Entry | None:
    """The entry of an earlier sealed registration on the same cohort."""
    sampler = form.sampler.model_dump(mode="json") if form.sampler else None
    digests = {role: file.sha256 for role, file in files.items()}
    for entry in of_kind(entries, "registration"):
        cohort = entry.body["cohort"]
        same = [cohort.get(name) for name in ("form", "options", "sampler")] == [form.form, form.options, sampler]
        if entry.body["sealed"] and same and digests == {role: f["sha256"] for role, f in cohort["files"].items()}:
            return entry
    return None


def _calibration(
    form: AssayForm, sealed: Cohort, identities: Sequence[str], entries: Sequence[Entry]
) -> Calibration | None:
    if form.calibration is None:
        return None
    cohort, others = resolve(form.calibration.cohort, entries, sealed=False)
    if set(others) & set(identities):
        raise ConfigurationError(f"the calibration cohort {cohort.name} shares claims with the cohort {sealed.name}")
    return Calibration(cohort=cohort, gates=form.calibration.gates, chooses=form.calibration.chooses)
