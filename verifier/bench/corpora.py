"""Synthetic corpora as JSON lines: passages of chosen lengths in the words of the demo corpus."""

import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from verifier.demo import demo_path

Line = dict[str, Any]


def demo_lines() -> list[Line]:
    """The rows of the demo corpus."""
    return [json.loads(line) for line in demo_path().read_text(encoding="utf-8").splitlines()]


def texts_of(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    """Every claim and passage of the rows."""
    return [text for line in lines for text in (line["claim"], *(item["text"] for item in line["evidence"]))]


def write_lines(path: Path, lines: Iterable[Any]) -> Path:
    """Write values as JSON lines."""
    with path.open("w", encoding="utf-8") as stream:
        for line in lines:
            stream.write(json.dumps(line, ensure_ascii=False) + "\n")
    return path


def mixed_claims(count: int, seed: int = 0) -> Iterator[Line]:
    """Claims whose passages have 15 to 220 words: one long passage, or two or three shorter ones.

    Short ones are more frequent than long ones, and no group of two is too long for a model of 512 tokens.
    """
    rng = random.Random(seed)
    sentences = _sentences()
    for number in range(count):
        passages = rng.choice((1, 1, 2, 2, 3))
        longest = 220 if passages == 1 else 90
        sizes = [int(15 * (longest / 15) ** rng.random()) for _ in range(passages)]
        yield _line(f"mixed-{number:06d}", rng.choice(sentences), [_passage(rng, sentences, size) for size in sizes])


def short_claims(count: int, seed: int = 0) -> Iterator[Line]:
    """Claims with one to three passages of one to three sentences, no two passages alike."""
    rng = random.Random(seed)
    sentences = _sentences()
    for number in range(count):
        passages = [
            " ".join([*rng.choices(sentences, k=rng.randint(1, 3)), f"Entry {number}.{item}."])
            for item in range(rng.randint(1, 3))
        ]
        yield _line(f"short-{number:07d}", rng.choice(sentences), passages)


def _sentences() -> list[str]:
    return [line["claim"] for line in demo_lines()]


def _passage(rng: random.Random, sentences: Sequence[str], words: int) -> str:
    chosen: list[str] = []
    while len(chosen) < words:
        chosen += rng.choice(sentences).split()
    return " ".join(chosen[:words])


def _line(claim_id: str, claim: str, passages: Sequence[str]) -> Line:
    evidence = [{"reference": f"e{number}", "text": text} for number, text in enumerate(passages, 1)]
    return {"claim_id": claim_id, "claim": claim, "evidence": evidence}
