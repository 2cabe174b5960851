"""Targets: whatever scans, cuts or compares text."""

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.fuzz.registry import target
from tests.fuzz.strategies import safe_text
from verifier import Claim, Evidence, VerificationPolicy, verify_claims
from verifier.decompose.receipt_sentences import ReceiptSentences
from verifier.decompose.sentences import claims_of_sentences
from verifier.errors import InputError
from verifier.factuality.corroboration import corroborate
from verifier.fusion import PlanIdf, lexical_coverage, numeric_atoms, redact, tokenize
from verifier.fusion.features import TextFeatures as FusionFeatures
from verifier.fusion.records import ClaimVerdict, Draft
from verifier.fusion.redaction import NOTICE
from verifier.fusion.verdicts import Verdict
from verifier.report.highlight import pieces, shown_length
from verifier.search.guards import Passage, contradiction_corroborated, negation_overlap
from verifier.text.features import TextFeatures
from verifier.text.packing import pack_lines, pack_sentences, pack_words, sentences
from verifier.text.segments import segment_spans
from verifier.text.windows import sentence_ends, split_windows
from verifier.text.words import fold, literals

SHARE = 6.0
_long = st.one_of(safe_text, st.tuples(safe_text, st.integers(1, 60)).map(lambda two: two[0] * two[1]))


@target(_long, share=SHARE)
def text_features(text: str) -> None:
    found = TextFeatures.of([text])[text]
    assert len(fold(text)) == len(text) and len(literals([fold(text)])) == 1
    assert found.modes >= 0 and bool(found.negated_clause_tokens) == found.has_negated_clause
    assert all(clause in text or clause for clause in found.negated_clause_tokens if isinstance(clause, str))
    assert {type(found.has_correction_cue)} == {bool}
    assert isinstance(found.numbers | found.weekdays | found.months | found.tokens, frozenset)
    for number, segment in found.segments_without(found.modes, negation=True):
        assert number >= 1 and segment and segment in text


@target(_long, share=SHARE)
def segments_and_sentences(text: str) -> None:
    spans = segment_spans(text)
    assert all(0 <= start < end <= len(text) for start, end in spans) and spans == sorted(spans)
    assert "".join(sentences(text)) == text
    ends = sentence_ends(text)
    assert ends[-1] == len(text) and ends == sorted(ends)


def _characters(text: str) -> Any:
    places = np.arange(len(text), dtype=np.int64)
    return np.stack([places, places + 1], axis=1)


@target(st.tuples(_long, st.integers(1, 30)), share=SHARE)
def windows_and_chunks(data: tuple[str, int]) -> None:
    text, budget = data
    windows = split_windows(text, _characters, budget)
    assert "".join("".join(windows).split()) == "".join(text.split())
    assert all(len(window) <= budget for window in windows)
    for chunks in (
        pack_lines(text, budget, len),
        pack_sentences(text, budget),
        pack_words(text, _characters, len, budget),
    ):
        assert "".join("".join(chunks).split()) == "".join(text.split())


@target(st.tuples(safe_text, safe_text, safe_text, st.sampled_from([None, "hypothetical", "deprecated"])), share=SHARE)
def guards(data: tuple[str, str, str, Any]) -> None:
    claim, one, other, epistemic = data
    features = TextFeatures.of([claim, one, other])
    group = [
        Passage(features[claim], Evidence(f"r{n}", text.strip() or "x", epistemic_type=epistemic), features[text])
        for n, text in enumerate((one, other))
    ]
    assert {type(passage.may_support) for passage in group} == {bool}
    assert isinstance(negation_overlap(group), bool) and isinstance(
        contradiction_corroborated(features[claim], group), bool
    )
    assert all(text for passage in group for _, text in passage.supporting_segments())


class _Constant:
    model, revision = VerificationPolicy().model, "1"

    def score(self, pairs: list[tuple[str, str]]) -> Any:
        return np.tile([0.5, 0.3, 0.2], (len(pairs), 1))


@target(st.tuples(safe_text, st.lists(safe_text, max_size=3)))
def verifications(data: tuple[str, list[str]]) -> None:
    """Whatever a claim and its passages say, there is a record whose digests can be worked out."""
    text, passages = data
    evidence = tuple(Evidence(f"r{n}", passage) for n, passage in enumerate(passages) if passage.strip())
    (record,) = verify_claims([Claim("c", text.strip() or "x", evidence)], _Constant(), VerificationPolicy())
    assert record.result_sha256 == record.computed_result_sha256()


@target(_long, share=SHARE)
def decomposition(draft: str) -> None:
    last = 0
    for claim in claims_of_sentences(draft, ("x", "S1")):
        start, end = claim.draft_span
        assert last <= start < end <= len(draft) and claim.text
        last = end
    (found,) = ReceiptSentences().decompose([Draft("d", draft)])
    assert all(draft[slice(*claim.draft_span)] == claim.text for claim in found.claims)


@target(st.tuples(_long, safe_text), share=SHARE)
def fusion_words(data: tuple[str, str]) -> None:
    span, claim = data
    tokens, asked = tokenize(span), tokenize(claim)
    assert all(tokens) and all(atom for atom in numeric_atoms(tokens))
    assert 0 <= lexical_coverage(asked, tokens, PlanIdf([tokens])) <= 1 + 1e-12
    assert FusionFeatures.of([span, claim]).units.shape[0] == len({span, claim})
    assert corroborate(span, claim)


_ranges = st.lists(st.tuples(st.integers(-3, 60), st.integers(-3, 60), st.sampled_from(list(Verdict))), max_size=5)


@target(st.tuples(safe_text, _ranges), share=SHARE)
def redaction(data: tuple[str, list[tuple[int, int, Verdict]]]) -> None:
    """No character of an unsupported claim is delivered, and all others are."""
    draft, judged = data
    verdicts = [ClaimVerdict("x", (start, end), verdict) for start, end, verdict in judged]
    try:
        delivered = redact(draft, verdicts)
    except InputError:
        wrong = [one.draft_span for one in verdicts if one.verdict == Verdict.UNSUPPORTED]
        assert any(not 0 <= start < end <= len(draft) for start, end in wrong)
        return
    removed = {place for one in verdicts if one.verdict == Verdict.UNSUPPORTED for place in range(*one.draft_span)}
    kept = "".join(character for place, character in enumerate(draft) if place not in removed)
    assert (delivered.replace(NOTICE, "") if NOTICE not in draft else kept) == kept
    marked = [(start, end, verdict.value) for start, end, verdict in judged]
    assert "".join(piece.text for piece in pieces(draft, marked)) == draft
    assert 0 <= shown_length(draft, marked, 20) <= len(draft)


@target(st.tuples(st.lists(st.floats(), min_size=2, max_size=2)), share=1)
def numbers_as_atoms(data: tuple[list[float]]) -> None:
    for value in data[0]:
        atoms = numeric_atoms(tokenize(repr(value)))
        assert all(atom == "inf" or math.isfinite(float(atom)) for atom in atoms)
