"""The two scorers of the method ``fusion+nli``, held as one."""

from functools import partial
from typing import Any

from verifier.digests import sha256_json
from verifier.scorers.base import identify
from verifier.validation import refuse_unknown_arguments


class CosineAndLabels:
    """A scorer of cosines and one of three labels; ``verifier.scorers.base.ask_round`` asks the one or the other.

    Args:
        cosine: a scorer of support, or a factory of one (``functools.partial``), which is then built here.
        labels: a three-label scorer, or a factory of one.

    Attributes:
        cosine, labels: the scorers.
        model: such as ``a + b``.
        revision: hexadecimal sha256 over both models and revisions.
        dtype: both, joined by ``+`` where they differ.
    """

    def __init__(self, cosine: Any, labels: Any) -> None:
        self.cosine, self.labels = (part() if isinstance(part, partial) else part for part in (cosine, labels))
        parts = (self.cosine, self.labels)
        identity = _identity([{"model": part.model, "revision": part.revision} for part in parts])
        self.model, self.revision = identity["model"], identity["revision"]
        self.dtype = "+".join(dict.fromkeys(str(getattr(part, "dtype", "unknown")) for part in parts))

    @classmethod
    def identify(cls, cosine: partial[Any], labels: partial[Any]) -> dict[str, str]:
        """Model and revision, and what each part would be as ``cosine.<field>`` and ``labels.<field>``.

        Loads neither; raises ConfigurationError where one could not be built.
        """
        parts = {"cosine": cosine, "labels": labels}
        for name, part in parts.items():
            refuse_unknown_arguments(part, f"scorer.{name}")
        identities = {name: identify(part) for name, part in parts.items()}
        each = {f"{name}.{field}": value for name, identity in identities.items() for field, value in identity.items()}
        return _identity(list(identities.values())) | each


def _identity(parts: list[dict[str, str]]) -> dict[str, str]:
    pairs = [[part["model"], part["revision"]] for part in parts]
    return {"model": " + ".join(model for model, _ in pairs), "revision": sha256_json(pairs)}
