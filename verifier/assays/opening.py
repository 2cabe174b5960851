"""The way to the claims of a cohort, labels included: past the seals."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from verifier.assays.cohorts.identity import identity_of
from verifier.assays.cohorts.loading import check_shape, load_all, selected_of, shape_of
from verifier.assays.ledger import Entry
from verifier.assays.registration import Cohort
from verifier.assays.sealing import refuse_cohort, sealed_identities
from verifier.records import Claim


def open_cohort(cohort: Cohort, entries: Sequence[Entry], paths: Mapping[str, Path] | None = None) -> list[Claim]:
    """The claims of a cohort, its digests and shape checked; SealedCohort where any of them is sealed.

    A cohort that was drawn from a file beside a sealed one can be opened: the sealed claims are dropped before
    anything is made of them. ``paths`` stand in for the registered ones, by role.
    """
    refuse_cohort(cohort, entries)
    loaded = load_all(cohort, paths)
    sealed = sealed_identities(entries)
    visible = [claim for claim in loaded.claims if identity_of(claim) not in sealed] if sealed else loaded.claims
    claims = selected_of(cohort, visible)
    check_shape(shape_of(cohort.form, loaded.rows, claims), cohort.shape, cohort.name)
    return claims
