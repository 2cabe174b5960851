"""Recorded scores, replayed: the same decisions again without the model."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from verifier.digests import sha256_file, sha256_text
from verifier.errors import ConfigurationError, MissingScore
from verifier.protocol import LABELS, PairError, Scores
from verifier.records import DEFAULT_MODEL, DEFAULT_REVISION
from verifier.search.premises import premise

Row = tuple[str, str, float, float, float]
Key = tuple[str, str]  # sha256 of premise and hypothesis


class RecordedScorer:
    """A three-label scorer that looks its answers up.

    ``rows`` are (premise, hypothesis, entailment, contradiction, neutral), the texts exactly as the model
    would be asked. Of a pair recorded twice the first row stands.
    """

    dtype = "recorded"

    def __init__(self, rows: Iterable[Row], model: str = DEFAULT_MODEL, revision: str = DEFAULT_REVISION) -> None:
        self.model = model
        self.revision = revision
        self._values: dict[Key, Sequence[float]] = {}
        for text, hypothesis, *triple in rows:
            self._values.setdefault((sha256_text(text), sha256_text(hypothesis)), triple)

    def score(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """The recorded probabilities, shape (n, 3); MissingScore names the digests of a pair that has none."""
        scores = self.score_detailed(pairs)
        for error in scores.errors.values():
            raise MissingScore(error.message)
        return scores.values

    def score_detailed(self, pairs: Sequence[tuple[str, str]]) -> Scores:
        """Like ``score``, but a pair that was not recorded is an error of its own and has NaN values."""
        keys = [(sha256_text(text), sha256_text(hypothesis)) for text, hypothesis in pairs]
        missing = (np.nan,) * len(LABELS)
        values = np.array([self._values.get(key, missing) for key in keys], dtype=np.float64)
        errors = {index: _missing(key) for index, key in enumerate(keys) if key not in self._values}
        whole = Scores.whole(values.reshape(len(pairs), len(LABELS)))
        return Scores(whole.values, whole.windows, whole.window, whole.truncated, errors)


class RecordedFileScorer(RecordedScorer):
    """Scores recorded in a file: parquet or JSON lines with a row a pair, or the scores of an assay.

    A row a pair has ``entailment``, ``contradiction``, ``neutral`` and either ``premise`` and ``hypothesis`` or
    ``premise_sha256`` and ``hypothesis_sha256`` (the form of ``verifier.results.scored_pairs``); rows without labels,
    such as those of support, are passed over. The scores of an assay have a line a case, with ``groups`` and
    ``localized``; their texts stand in ``registration``.

    Args:
        path: the file.
        model: name of the model that the scores came from.
        revision: its revision.
        registration: the registration that an assay's scores belong to; unused for other files.
    """

    def __init__(
        self,
        path: str,
        model: str = DEFAULT_MODEL,
        revision: str = DEFAULT_REVISION,
        registration: str | None = None,
    ) -> None:
        super().__init__((), model, revision)
        for key, triple in _read(path, registration):
            self._values.setdefault(key, triple)

    @classmethod
    def identify(
        cls, path: str, model: str = DEFAULT_MODEL, revision: str = DEFAULT_REVISION, registration: str | None = None
    ) -> dict[str, str]:
        """Model, revision and the sha256 of the file, without reading scores; ConfigurationError if it is missing."""
        if not Path(path).is_file():
            raise ConfigurationError(f"scorer.path is {path}, which is no file: name a file of recorded scores")
        return {"model": model, "revision": revision, "sha256": sha256_file(Path(path))}


def _missing(key: Key) -> PairError:
    message = f"no score was recorded for premise sha256 {key[0]}, hypothesis sha256 {key[1]}"
    return PairError("unscored", "missing_score", message)


def _read(path: str, registration: str | None) -> Iterator[tuple[Key, Sequence[float]]]:
    try:
        with Path(path).open(encoding="utf-8") as lines:
            first = None if path.endswith(".parquet") else json.loads(next(lines, "{}"))
        if isinstance(first, Mapping) and "groups" in first:
            return iter(list(_assay_rows(path, registration)))
        frame = pl.read_parquet(path) if path.endswith(".parquet") else pl.read_ndjson(path)
        return iter(list(_pair_rows(frame)))
    except (OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigurationError(f"{path} holds no recorded scores that can be read: {reason}") from error


def _pair_rows(frame: pl.DataFrame) -> Iterator[tuple[Key, Sequence[float]]]:
    keys = [name if f"{name}_sha256" not in frame.columns else f"{name}_sha256" for name in ("premise", "hypothesis")]
    missing = [name for name in (*keys, *LABELS) if name not in frame.columns]
    if missing:
        raise ValueError(f"the column {missing[0]} is missing")
    frame = frame.filter(pl.any_horizontal(pl.col(LABELS).is_not_null()))
    texts = [frame[key].to_list() for key in keys]
    if keys[0] == "premise":
        texts = [[sha256_text(text) for text in column] for column in texts]
    return zip(zip(*texts, strict=True), frame.select(LABELS).iter_rows(), strict=True)


def _assay_rows(path: str, registration: str | None) -> Iterator[tuple[Key, Sequence[float]]]:
    if registration is None:
        raise ValueError("scores of an assay need scorer.registration, the file with its cases")
    cases = json.loads(Path(registration).read_text(encoding="utf-8"))["protocol"]["cases"]
    by_id: dict[str, Any] = {case["id"]: case for case in cases}
    with Path(path).open(encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            case = by_id[record["id"]]
            texts = {item["reference"]: item["text"].strip() for item in case["evidence"]}
            hypothesis = sha256_text(case["claim"].strip())
            for references, triple in record["groups"]:
                yield (sha256_text(premise([texts[name] for name in references])), hypothesis), triple
            for _, digest, triple in record["localized"]:
                if triple is not None:
                    yield (digest, hypothesis), triple
