"""What the fusion matcher makes of the adversarial set: ``python -m tests.fusion.adversarial.measure`` prints it.

Default configuration, the embedded all-MiniLM-L6-v2. Nothing of the matcher was chosen or changed for what stands here.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from tests.fusion.adversarial.build import CASES, EXPECTED
from verifier.embedders import TransformerEmbedder
from verifier.fusion import (
    Candidate,
    ClaimVerdict,
    Draft,
    DraftClaim,
    FusionConfig,
    PlanIdf,
    PlanSpan,
    Verdict,
    match_drafts,
    numeric_atoms,
    numeric_gate_trips,
    tokenize,
)
from verifier.fusion.confirmed import FusionNli, FusionNliPolicy
from verifier.protocol import Outcome, run_plan
from verifier.records import Claim, Evidence
from verifier.scorers import RecordedScorer, RecordedSupportScorer
from verifier.scorers.base import ask_round
from verifier.scorers.fusion_nli import CosineAndLabels

NO_NUMBER = "what was swapped in is no number by the seed's rule: spelled out, or an ordinal such as 43rd"
ELSEWHERE = "what was swapped in is a number of the evidence too, in another place"
CONTRADICTED = (0.05, 0.9, 0.05)


class Measured(NamedTuple):
    """A case, its verdict, and the candidate with the best score."""

    case: Mapping[str, Any]
    verdict: ClaimVerdict
    best: Candidate


def measured() -> list[Measured]:
    """Every case of the frozen set under the defaults of ``FusionConfig``, a draft each."""
    cases = [json.loads(line) for line in CASES.read_text("utf-8").splitlines()]
    found = match_drafts([_draft(case) for case in cases], TransformerEmbedder(), FusionConfig())
    verdicts = [draft.claims[0] for draft in found]
    return [
        Measured(case, verdict, next(one for one in verdict.candidates if one.span == verdict.best_span.index))
        for case, verdict in zip(cases, verdicts, strict=True)
    ]


def _draft(case: Mapping[str, Any]) -> Draft:
    spans = [
        PlanSpan(span["span_id"], span["text"], span_class="truth" if span["truth_class"] else "cache")
        for span in case["spans"]
    ]
    return Draft(case["id"], case["claim"], (DraftClaim(case["claim"], (0, len(case["claim"]))),), tuple(spans))


def of_class(found: Sequence[Measured], name: str) -> list[Measured]:
    """The cases of one class."""
    return [one for one in found if one.case["class"] == name]


def swapped_in(one: Measured) -> list[str]:
    """The tokens of the claim that its best span lacks, each as often as it lacks it."""
    claim, span = _tokens(one)
    return list((Counter(claim) - Counter(span)).elements())


def reason(one: Measured) -> str:
    """Why a swapped number passes the gate, from the texts and the rule of the gate; empty where the gate trips."""
    claim, span = _tokens(one)
    if numeric_gate_trips(numeric_atoms(claim), numeric_atoms(span)):
        return ""
    return ELSEWHERE if numeric_atoms(swapped_in(one)) else NO_NUMBER


def unseen(one: Measured) -> float:
    """The share of a claim's IDF weight that lies on words of no span of the plan, in [0, 1]."""
    idf = PlanIdf([tokenize(span["text"]) for span in one.case["spans"]])
    known = {token for span in one.case["spans"] for token in tokenize(span["text"])}
    claim, _ = _tokens(one)
    return sum(idf(token) for token in claim if token not in known) / sum(idf(token) for token in claim)


def coverage_needed(one: Measured, score: float = 0.5, beta: float = 0.65) -> float:
    """The coverage from which on a claim with this cosine has the score: cos^beta · lex^(1 - beta) solved for lex."""
    return float((score / one.best.cosine**beta) ** (1 / (1 - beta)))


def confirmed_by(found: Sequence[Measured], labels: tuple[float, float, float]) -> list[Outcome]:
    """The cases as claims of ``method=fusion+nli``: the same cosines, and ``labels`` for every confirmation."""
    claims = [
        Claim(case["id"], case["claim"], tuple(Evidence(span["span_id"], span["text"]) for span in case["spans"]))
        for case, _, _ in found
    ]
    pairs = [
        (one.case["spans"][near.span]["text"], one.case["claim"], near.cosine)
        for one in found
        for near in one.verdict.candidates
    ]
    cosine = RecordedSupportScorer([(span, claim, max(value, 0.0)) for span, claim, value in pairs])
    scorer = CosineAndLabels(cosine, RecordedScorer([(span, claim, *labels) for span, claim, _ in pairs]))
    method = FusionNli(FusionNliPolicy(model=scorer.model, revision=scorer.revision), scorer.revision)
    return run_plan(method.plan(claims), lambda asked: ask_round(scorer, asked, method.asks))


def _tokens(one: Measured) -> tuple[list[str], list[str]]:
    return tokenize(one.case["claim"]), tokenize(one.case["spans"][one.best.span]["text"])


def figures(found: Sequence[Measured]) -> str:
    """The measured figures as Markdown."""
    lines = ["| class | cases | supported | partial | unsupported |", "|---|---|---|---|---|"]
    for name in EXPECTED:
        cases = of_class(found, name)
        verdicts = Counter(one.verdict.verdict for one in cases)
        shares = (f"{verdicts[verdict] / len(cases):.1%}" for verdict in list(Verdict)[:3])
        lines.append(f"| {name} | {len(cases)} | {' | '.join(shares)} |")
    swaps = of_class(found, "entity_swap")
    statuses = Counter(outcome.verification.status for outcome in confirmed_by(swaps, CONTRADICTED))
    told = ", ".join(f"{count / len(swaps):.1%} {status}" for status, count in statuses.items())
    lines += [
        "",
        f"entity_swap under fusion+nli, with scripted labels that contradict: {told}",
        "",
        "Number swaps that pass:",
    ]
    passed = Counter(filter(None, map(reason, of_class(found, "number_swap"))))
    lines += [f"- {count}: {why}" for why, count in passed.most_common()]
    lines += ["", "Fabrications, means of the best span:"]
    for verdict in (Verdict.PARTIAL, Verdict.UNSUPPORTED):
        cases = [one for one in of_class(found, "topical_fabrication") if one.verdict.verdict == verdict]
        means = (
            f"cosine {fmean(one.best.cosine for one in cases):.2f}",
            f"coverage {fmean(one.best.lexical for one in cases):.2f}",
            f"coverage that 0.5 takes at that cosine {fmean(map(coverage_needed, cases)):.2f}",
            f"weight of words that no span has {fmean(map(unseen, cases)):.2f}",
            f"gate tripped in {sum(one.best.gate_tripped for one in cases)}",
        )
        lines.append(f"- {len(cases)} {verdict}: {', '.join(means)}")
    return "\n".join(lines)


if __name__ == "__main__":
    print(figures(measured()))
