"""Planning speed with scoring free of cost: our batches of claims beside the published package, claim by claim."""

import asyncio
import gc
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args

from verifier.bench.figures import Figure, Part
from verifier.bench.scorers import Kind, MemoScorer
from verifier.pipeline.forms import claim_from_wice
from verifier.records import Claim, Evidence, Verification, VerificationPolicy, evidence_to_json
from verifier.search.verify import verify_claims

TITLE = "verify_claims beside prme, scoring free of cost, interleaved"

Record = dict[str, Any]

_REPEATS = 5  # of our side in a round: one pass takes a fifth of a second, too short for a clock


def measure_planning(
    wice: str,
    policy: Mapping[str, Any],
    rounds: int = 5,
    batch_size: int = 256,
    sample: int | None = None,
    max_claims: int | None = None,
    target: float | None = None,
) -> Part:
    """Claims per second on both sides, on WiCE documents and on their sentences.

    Args:
        wice: an oracle chunk file of WiCE.
        policy: fields of VerificationPolicy.
        rounds: how often both sides are measured, one after the other.
        batch_size: claims that our side is given together.
        sample: claims of a round that the published package is given (None: all, dealt out over the rounds).
        max_claims: claims of the file to use (None: all).
        target: how many times faster our side must be on documents.
    """
    if not Path(wice).is_file():
        return Part("planning", TITLE, notes=(f"skipped: {wice} is not there; set bench.wice to a WiCE file",))
    peer = _peer()
    if peer is None:
        return Part("planning", TITLE, notes=("skipped: prme is not installed; pip install 'claim-verifier[peers]'",))
    checked = VerificationPolicy(**policy)
    gc.freeze()  # as an actor does: neither side pays for collections through the imported libraries
    documents, sentences = read_wice(wice, checked.max_evidence)
    figures: list[Figure] = []
    details: dict[str, Any] = {"prme": version("prme"), "records_compared": 0, "records_equal": 0}
    for corpus, claims in (("documents", documents[:max_claims]), ("sentences", sentences[:max_claims])):
        for kind in get_args(Kind):
            side = _Sides(peer, checked, claims, MemoScorer(kind, checked.model, checked.revision))
            measured = side.rounds(rounds, batch_size, sample)
            figures += _figures(f"{corpus}/{kind}", measured, target if corpus == "documents" else None)
            details["records_compared"] += side.compared
            details["records_equal"] += side.compared - side.different
            details[f"{corpus}/{kind}/pairs"] = len(side.scorer.known)
    equal, compared = details["records_equal"], details["records_compared"]
    note = f"{equal:,} of {compared:,} records that both sides made are equal, all digests included"
    if equal < compared:
        note = f"RECORDS DIFFER: {note}"
    return Part("planning", TITLE, figures, (note,), details)


def _figures(name: str, measured: Sequence[Mapping[str, float]], target: float | None) -> list[Figure]:
    figures = [
        Figure(f"{name}/{clock}_ratio", [r[f"ours_{clock}"] / r[f"peer_{clock}"] for r in measured], "x", target)
        for clock in ("cpu", "wall")
    ]
    figures += [
        Figure(f"{name}/{side}_claims_per_cpu_second", [r[f"{side}_cpu"] for r in measured], "1/s")
        for side in ("ours", "peer")
    ]
    return figures


def read_wice(path: str, max_evidence: int) -> tuple[list[Claim], list[Claim]]:
    """The claims of a WiCE file, their evidence first as oracle documents, then as distinct sentences."""
    variants: dict[str, list[dict[str, Any]]] = {}
    with Path(path).open(encoding="utf-8") as lines:
        for line in lines:
            value = json.loads(line)
            variants.setdefault(value["meta"]["id"], []).append(value)
    documents = [claim_from_wice(group) for group in variants.values()]
    return documents, [_by_sentences(group, max_evidence) for group in variants.values()]


def _by_sentences(variants: Sequence[Mapping[str, Any]], max_evidence: int) -> Claim:
    texts = dict.fromkeys(sentence.strip() for variant in variants for sentence in variant["evidence"])
    kept = [text for text in texts if text][:max_evidence]
    evidence = tuple(Evidence(reference=f"s{number}", text=text) for number, text in enumerate(kept, 1))
    return Claim(claim_id=variants[0]["meta"]["id"], claim=variants[0]["claim"], evidence=evidence)


def _peer() -> Any | None:
    with suppress(ImportError):
        return import_module("prme")
    return None


class _Sides:
    """One corpus and one way of scoring, on both sides; the published package is a black box but for its model."""

    def __init__(self, peer: Any, policy: VerificationPolicy, claims: Sequence[Claim], scorer: MemoScorer) -> None:
        self.policy, self.claims, self.scorer = policy, claims, scorer
        self.peer = peer.ClaimVerifier(peer.ClaimVerificationConfig(**policy.model_dump()))
        self.peer._ensure_model = lambda: None
        self.peer._predict_sync = scorer.triples
        self.evidence = [[peer.ClaimEvidence(**item) for item in evidence_to_json(claim.evidence)] for claim in claims]
        self.compared = self.different = 0

    def rounds(self, count: int, batch_size: int, sample: int | None) -> list[dict[str, float]]:
        """Claims per CPU second and per second of both sides, one mapping a round."""
        by_size = sorted(
            range(len(self.claims)), key=lambda index: sum(len(e.text) for e in self.claims[index].evidence)
        )
        records = self._ours(batch_size)  # every score is known after this
        measured = []
        for number in range(count):
            # dealt out like cards, so that every round has claims of all sizes and no two rounds share one
            hand = by_size[number::count]
            chosen = hand[:: max(1, len(hand) // sample)][:sample] if sample else hand
            _, ours = _timed(len(self.claims) * _REPEATS, lambda: [self._ours(batch_size) for _ in range(_REPEATS)])
            answers, peers = _timed(len(chosen), partial(self._peers, chosen))
            self._compare([records[index] for index in chosen], answers)
            sides = (("ours", ours), ("peer", peers))
            measured.append({f"{side}_{clock}": rate for side, rates in sides for clock, rate in rates.items()})
        return measured

    def _ours(self, batch_size: int) -> list[Verification]:
        batches = (self.claims[start : start + batch_size] for start in range(0, len(self.claims), batch_size))
        return [record for batch in batches for record in verify_claims(batch, self.scorer, self.policy)]

    def _peers(self, chosen: Sequence[int]) -> list[Any]:
        async def verify() -> list[Any]:
            return [await self.peer.verify(self.claims[index].claim, self.evidence[index]) for index in chosen]

        return asyncio.run(verify())

    def _compare(self, ours: Sequence[Verification], peers: Sequence[Any]) -> None:
        for record, answer in zip(ours, peers, strict=True):
            # the peer's model is never loaded, so it resolves no revision
            same = record.to_dict() | {"resolved_revision": None} == answer.model_dump(mode="json")
            self.compared += 1
            self.different += not same


def _timed(claims: int, work: Callable[[], list[Any]]) -> tuple[list[Any], dict[str, float]]:
    """What the work returns, and its claims per second of either clock."""
    cpu, wall = time.process_time(), time.perf_counter()
    done = work()
    return done, {"cpu": claims / (time.process_time() - cpu), "wall": claims / (time.perf_counter() - wall)}
