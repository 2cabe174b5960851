"""The seals of a ledger: which are closed, and which unlock opens which of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from verifier.assays.ledger import Entry, of_kind


@dataclass(frozen=True)
class Seal:
    """A seal.

    Attributes:
        name: the cohort's.
        registration: sha256 of the registration that closed it.
        files: sha256 of its files.
        identities: of its claims.
        selected: ids of its claims, where it was drawn from a file; empty for all of a file.
        failed: whether the calibration of that registration has failed.
    """

    name: str
    registration: str
    files: frozenset[str]
    identities: frozenset[str]
    selected: frozenset[str]
    failed: bool = False


def closed_seals(entries: Sequence[Entry]) -> list[Seal]:
    """The seals of a ledger that no unlock has opened.

    An unlock opens its claims for every registration on them. Where the calibration of a registration had failed
    before, an unlock by another one opens its seal only if that one was calibrated on the same cohort, by all the
    gates of the first and with no bound that is weaker: gates that were not met cannot be undone by
    registering lower ones.
    """
    sealed = {entry.body["registration"]: _seal(entry, entries) for entry in _sealing(entries)}
    unlocks = [entry for entry in of_kind(entries, "unlock") if entry.body["registration"] in sealed]
    return [
        seal
        for seal in sealed.values()
        if not seal.identities
        <= _union(sealed[unlock.body["registration"]] for unlock in unlocks if _opens(unlock, seal, entries))
    ]


def kept_closed(registration: str, entries: Sequence[Entry]) -> list[Seal]:
    """The closed seals on claims of a registration whose failed calibration an unlock of it does not undo."""
    own = _union(_seal(entry, entries) for entry in _sealing(entries) if entry.body["registration"] == registration)
    return [
        seal
        for seal in closed_seals(entries)
        if seal.failed
        and seal.identities & own
        and seal.registration != registration
        and not _as_strict(registration, seal.registration, entries)
    ]


def _opens(unlock: Entry, seal: Seal, entries: Sequence[Entry]) -> bool:
    by = unlock.body["registration"]
    failed_before = any(entry.number < unlock.number for entry in _failed(seal.registration, entries))
    return by == seal.registration or not failed_before or _as_strict(by, seal.registration, entries)


def _as_strict(by: str, failed: str, entries: Sequence[Entry]) -> bool:
    """Whether a calibration held on the same cohort every gate of the failed one, with bounds that are not weaker."""
    theirs = _failed(failed, entries)
    ours = of_kind(entries, "calibration", by)
    return all(_holds(one.body, other.body) for one in ours for other in theirs) and bool(ours)


def _holds(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> bool:
    bounds = {name: gate["required"] for name, gate in ours["gates"]["results"].items()}
    return ours["cohort_sha256"] == theirs["cohort_sha256"] and all(
        name in bounds and _no_weaker(name, bounds[name], gate["required"])
        for name, gate in theirs["gates"]["results"].items()
    )


def _no_weaker(gate: str, bound: float, than: float) -> bool:
    if gate.endswith("_min"):
        return bound >= than
    return bound <= than if gate.endswith("_max") else bound == than


def _failed(registration: str, entries: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in of_kind(entries, "calibration", registration) if not entry.body["passed"]]


def _sealing(entries: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in of_kind(entries, "registration") if entry.body["sealed"]]


def _seal(entry: Entry, entries: Sequence[Entry]) -> Seal:
    body = entry.body
    files = frozenset(file["sha256"] for file in body["cohort"]["files"].values())
    selected = frozenset(body["cohort"]["selected"] or ())
    failed = bool(_failed(body["registration"], entries))
    return Seal(body["cohort"]["name"], body["registration"], files, frozenset(body["identities"]), selected, failed)


def _union(seals: Iterable[Seal]) -> frozenset[str]:
    return frozenset(name for seal in seals for name in seal.identities)
