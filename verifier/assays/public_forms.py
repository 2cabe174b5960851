"""Registrations as others have published them, read as they are.

Two forms: a registration with its cases (``kind`` claim-verification-assay-registration), and a trial of a grounding
model on WiCE (dataset, model, protocol, summary and quality_gates in one object).
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pydantic

from verifier.assays.methods import built_policy
from verifier.assays.registration import Cohort, CohortFile, Registration, Scorer, Shape, first_problem
from verifier.digests import sha256_file
from verifier.errors import ConfigurationError, InputError
from verifier.pipeline.forms import registered_cases
from verifier.pipeline.validation import parse_object

AUTHORED_KIND = "claim-verification-assay-registration"
PUBLISHED_COHORTS = {
    "198de6972f541eff1b660230bb9e203e1a6c30a68bad3b562dcab4e8c01f500b": "guards44",
    "8ef75aed903eed1a612c8e105bd6f35e21dcc583f2c9e53e03a83e750e632f8a": "minimal20",
    "234bb8c2ca4511ca078e49e07c895a2db61a581d03237e7e1ecb7c48c8510a3e": "wice_minicheck_flan_t5",
}
"""sha256 of cohort files to the published assay that has observed them: no later registration is the first look."""

_COMPARISONS = {"strictly_greater_than": ">", "greater_than_or_equal": ">="}
_PREMISES = {"maximum_support_probability": "each"}


def read_public_registration(path: Path, claims: Path | None = None) -> Registration:
    """A published registration in our form; its own digest is that of its file, not of ours.

    Args:
        path: the published file.
        claims: the user's copy of the data set that a trial names; unused where the file holds its cases.

    Raises:
        ConfigurationError: the file is neither form, or a trial has a rule that no policy here expresses.
    """
    document = read_document(path)
    try:
        if document.get("kind") == AUTHORED_KIND:
            return _authored(document, path)
        if {"dataset", "model", "protocol", "quality_gates"} <= document.keys():
            return _trial(document, path, claims)
    except (KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(f"{path} is no published registration: it lacks {error}") from error
    except pydantic.ValidationError as error:
        raise ConfigurationError(f"{path} is no published registration: {first_problem(error)}") from error
    raise ConfigurationError(f"{path} is no published registration: neither kind nor dataset, model and protocol fit")


def read_document(path: Path) -> dict[str, Any]:
    """The JSON object of a file; ConfigurationError where it cannot be read as one."""
    try:
        return parse_object(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}: check the path") from error
    except InputError as error:
        raise ConfigurationError(f"{path} is no registration: {error}") from error


def _authored(document: Mapping[str, Any], path: Path) -> Registration:
    model, protocol = document["model"], document["protocol"]
    cases = registered_cases(document, str(path))
    labels = Counter(case["expected_status"] for case in cases)
    digest = sha256_file(path)
    name = PUBLISHED_COHORTS.get(digest, path.parent.name or path.stem)
    return Registration(
        name=name,
        purpose=document["purpose"],
        registered_at=document["registered_at"],
        cohort=Cohort(
            name=name,
            form="authored",
            files={"cases": CohortFile(path=str(path), sha256=digest)},
            shape=Shape(rows=len(cases), claims=len(cases), labels=dict(sorted(labels.items()))),
        ),
        method="groups",
        policy=_policy("groups", {"model": model["name"], "revision": model["revision"], **protocol["config"]}),
        scorer=Scorer(model=model["name"], revision=model["revision"]),
        protocol={name: value for name, value in protocol.items() if name not in ("cases", "config")},
        gates=document["evaluation"]["gates"],
        **_seen(digest),
    )


def _trial(document: Mapping[str, Any], path: Path, claims: Path | None) -> Registration:
    dataset, model, protocol = document["dataset"], document["model"], document["protocol"]
    policy = {
        "model": model["name"],
        "revision": model["revision"],
        "threshold": model["support_threshold"],
        "comparison": _known(_COMPARISONS, protocol, "threshold_operator", path),
        "premise": _known(_PREMISES, protocol, "variant_aggregation", path),
    }
    return Registration(
        name=PUBLISHED_COHORTS.get(dataset["sha256"], dataset["name"]),
        purpose=f"{model['name']} on {dataset['name']}, {protocol['task']}",
        registered_at=document.get("registered_at", "not published"),
        cohort=Cohort(
            name=dataset["name"],
            form="wice",
            files={"claims": CohortFile(path=str(claims or dataset["relative_path"]), sha256=dataset["sha256"])},
            shape=Shape(**dataset["expected_shape"]),
        ),
        method="grounding",
        policy=_policy("grounding", policy),
        scorer=Scorer(model=model["name"], revision=model["revision"]),
        protocol=dict(protocol),
        gates={name: gate["required"] for name, gate in document["quality_gates"]["results"].items()},
        **_seen(dataset["sha256"]),
    )


def _policy(method: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    policy: dict[str, Any] = built_policy(method, fields).model_dump(mode="json")
    return policy


def _known(rules: Mapping[str, str], protocol: Mapping[str, Any], name: str, path: Path) -> str:
    if protocol[name] not in rules:
        raise ConfigurationError(f"{path}: {name} is {protocol[name]!r}, known are {', '.join(rules)}")
    return rules[protocol[name]]


def _seen(digest: str) -> dict[str, Any]:
    published = PUBLISHED_COHORTS.get(digest)
    return {"observed": published is not None, "observed_by": (f"published:{published}",) if published else ()}
