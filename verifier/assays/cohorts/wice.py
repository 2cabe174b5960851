"""WiCE oracle chunks, claims and subclaims: the rows with one ``meta.id`` are the variants of one claim.

The files are those of github.com/ryokamoi/wice, ``entailment_inputs/oracle_chunks/{claim,subclaim}``: label, claim,
evidence (sentences), meta.id. A subclaim's id is its parent's with ``-`` and a number behind it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from verifier.assays.cohorts.reading import Loaded, at, read_objects
from verifier.pipeline.forms import claim_from_wice, wice_id
from verifier.records import Claim, Status

ROLES = ("claims",)


def load(paths: Mapping[str, Path], options: Mapping[str, str]) -> Loaded:
    """Claims in order of first appearance, see ``claim_from_wice``; the label of the data set is the category."""
    path = paths["claims"]
    groups: dict[str, list[dict[str, Any]]] = {}
    rows = 0
    for number, row in read_objects(path):
        groups.setdefault(at(path, number, wice_id, row), []).append(row)
        rows += 1
    return Loaded(rows, [at(path, f"claim {name}", claim_from_wice, group) for name, group in groups.items()])


def load_subclaims(paths: Mapping[str, Path], options: Mapping[str, str]) -> Loaded:
    """Each subclaim as a claim of its own, ``document_id`` the id of the claim that it is a part of."""
    loaded = load(paths, options)
    return Loaded(loaded.rows, [replace(claim, document_id=parent_id(claim.claim_id)) for claim in loaded.claims])


def parent_id(subclaim_id: str) -> str:
    """The id of the claim that a subclaim is a part of."""
    parent, dash, number = subclaim_id.rpartition("-")
    return parent if dash and number.isdigit() else subclaim_id


def statuses_of_parents(subclaims: Sequence[Claim], statuses: Mapping[str, str | None]) -> dict[str, str]:
    """What subclaims make of their claims: supported when all of them are, else insufficient.

    ``statuses`` are by subclaim id; a subclaim without one is not supported.
    """
    supported: dict[str, bool] = {}
    for claim in subclaims:
        parent = claim.document_id or claim.claim_id
        supported[parent] = supported.get(parent, True) and statuses.get(claim.claim_id) == Status.SUPPORTED
    return {name: (Status.SUPPORTED if all_of else Status.INSUFFICIENT).value for name, all_of in supported.items()}
