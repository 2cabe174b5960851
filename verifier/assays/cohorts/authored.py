"""Authored cases: a public registration holds them as ``protocol.cases``, each with its expected status."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from verifier.assays.cohorts.reading import Loaded, at, unique
from verifier.errors import ConfigurationError, InputError
from verifier.pipeline.forms import claim_from_case, registered_cases
from verifier.pipeline.validation import parse_object, shown
from verifier.records import Claim

ROLES = ("cases",)


def load(paths: Mapping[str, Path], options: Mapping[str, str]) -> Loaded:
    """The cases in registered order; label is the expected status, category the case's own."""
    path = paths["cases"]
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}: check the path") from error
    cases = registered_cases(at(path, 1, parse_object, content), str(path))
    claims = [at(path, f"case {number}", _claim, case) for number, case in enumerate(cases, 1)]
    return Loaded(len(cases), unique(claims, path))


def _claim(case: Any) -> Claim:
    if not isinstance(case, dict):
        raise InputError("not_an_object", f"the case is {shown(case)}, not an object")
    return claim_from_case(case)
