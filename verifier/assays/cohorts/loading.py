"""Loading a cohort: by its form, with its digests and its shape checked."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from verifier.assays.cohorts import aggrefact, authored, fever, ragtruth, wice
from verifier.assays.cohorts.reading import Loaded
from verifier.assays.registration import Cohort, Shape
from verifier.digests import sha256_file
from verifier.errors import ConfigurationError
from verifier.records import Claim

Load = Callable[[Mapping[str, Path], Mapping[str, str]], Loaded]


class Loader(NamedTuple):
    """How files of one form are read: the roles that must be given and may be given, and the options it knows."""

    load: Load
    roles: tuple[str, ...]
    optional: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


LOADERS: dict[str, Loader] = {
    "authored": Loader(authored.load, authored.ROLES),
    "wice": Loader(wice.load, wice.ROLES),
    "wice_subclaims": Loader(wice.load_subclaims, wice.ROLES),
    "ragtruth": Loader(ragtruth.load, ragtruth.ROLES, options=("split", "task_type", "quality")),
    "aggrefact": Loader(aggrefact.load, aggrefact.ROLES),
    "fever": Loader(fever.load, fever.ROLES, fever.OPTIONAL_ROLES),
}


def loader_of(form: str, roles: Mapping[str, object], options: Mapping[str, str]) -> Loader:
    """The loader of a form; ConfigurationError for an unknown form, a role that is missing, or one it does not know."""
    if form not in LOADERS:
        raise ConfigurationError(f"cohort.form is {form!r}: known are {', '.join(LOADERS)}")
    loader = LOADERS[form]
    known = {"files": (roles, (*loader.roles, *loader.optional)), "options": (options, loader.options)}
    for group, (given, allowed) in known.items():
        for name in given:
            if name not in allowed:
                raise ConfigurationError(
                    f"cohort.{group} has {name!r}, which the form {form} does not know: known are"
                    f" {', '.join(allowed) or 'none'}"
                )
    missing = [role for role in loader.roles if role not in roles]
    if missing:
        raise ConfigurationError(f"cohort.files lacks {missing[0]!r}, which the form {form} needs")
    return loader


def checked_digest(path: Path, sha256: str | None, name: str) -> str:
    """The sha256 of a file; ConfigurationError where it is missing or its digest is not the expected one."""
    try:
        found = sha256_file(path)
    except OSError as error:
        raise ConfigurationError(f"{name} is {path}, which cannot be read: {error.strerror}") from error
    if sha256 is not None and found != sha256:
        raise ConfigurationError(f"{path} is not the registered file: its sha256 is {found}, registered is {sha256}")
    return found


def shape_of(form: str, rows: int | None, claims: Sequence[Claim]) -> Shape:
    """The shape that claims have; the labels of the WiCE forms are those of the data set."""
    names = (claim.category if form.startswith("wice") else claim.label for claim in claims)
    labels = Counter(name or "(none)" for name in names)
    return Shape(rows=rows, claims=len(claims), labels=dict(sorted(labels.items())))


def check_shape(found: Shape, expected: Shape, name: str) -> None:
    """Raise ConfigurationError where a cohort has not the shape that is expected of it, naming what differs."""
    for what in ("rows", "claims", "labels"):
        ours, theirs = getattr(found, what), getattr(expected, what)
        if ours != theirs and theirs is not None:
            raise ConfigurationError(f"the cohort {name} has {what} {ours}, expected is {theirs}")


def load_all(cohort: Cohort, paths: Mapping[str, Path] | None = None) -> Loaded:
    """Every claim of a cohort's files, their digests checked; ``paths`` stand in for the registered ones."""
    loader = loader_of(cohort.form, cohort.files, cohort.options)
    where = {role: (paths or {}).get(role, Path(file.path)) for role, file in cohort.files.items()}
    for role, file in cohort.files.items():
        checked_digest(where[role], file.sha256, f"the file {role} of the cohort {cohort.name}")
    return loader.load(where, cohort.options)


def selected_of(cohort: Cohort, claims: Sequence[Claim]) -> list[Claim]:
    """The claims that a cohort has drawn, or all; ConfigurationError where one of them is not there."""
    if cohort.selected is None:
        return list(claims)
    by_id = {claim.claim_id: claim for claim in claims}
    missing = [name for name in cohort.selected if name not in by_id]
    if missing:
        raise ConfigurationError(f"the cohort {cohort.name} lacks the claim {missing[0]!r} that it has drawn")
    return [by_id[name] for name in cohort.selected]
