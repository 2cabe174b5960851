"""Sentences as claims: their ranges, their markers, and what is left out."""

import doctest
import re
import time
from types import ModuleType

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from verifier.decompose import SentenceDecomposer, answer, claims_of_sentences, sentences
from verifier.fusion.records import Draft, DraftClaim, PlanSpan, check_draft
from verifier.fusion.redaction import redact
from verifier.fusion.verdicts import Verdict


def claims(draft: str, *markers: str) -> list[tuple[str, str, tuple[str, ...]]]:
    return [
        (draft[slice(*claim.draft_span)], claim.text, claim.cited_markers)
        for claim in claims_of_sentences(draft, markers)
    ]


@pytest.mark.parametrize(
    ("draft", "expected"),
    [
        ("", []),
        (" \n\t\r\n", []),
        ("It rained.", [("It rained.", "It rained.", ())]),
        ("  It rained. \n", [("It rained.", "It rained.", ())]),
        ("Dr. Ek paid $3.5 million.", [("Dr. Ek paid $3.5 million.",) * 2 + ((),)]),
        ("It is old [S1]. So be it.", [("It is old [S1].", "It is old.", ("S1",)), ("So be it.", "So be it.", ())]),
        ("It is old. [S1] So be it.", [("It is old. [S1]", "It is old.", ("S1",)), ("So be it.", "So be it.", ())]),
        ("It is old.[S1] So be it.", [("It is old.[S1]", "It is old.", ("S1",)), ("So be it.", "So be it.", ())]),
        ("Oslo [S2] is old.", [("Oslo [S2] is old.", "Oslo is old.", ("S2",))]),
        ("Oslo[S2]is old.", [("Oslo[S2]is old.", "Oslo is old.", ("S2",))]),
        (
            "It is old [S1][S2] [S1, S13; S4].",
            [("It is old [S1][S2] [S1, S13; S4].", "It is old.", ("S1", "S2", "S13", "S4"))],
        ),
        ("[S1] It is old.", [("[S1] It is old.", "It is old.", ("S1",))]),
        ("It is old.\n[S1] So be it.", [("It is old.", "It is old.", ()), ("[S1] So be it.", "So be it.", ("S1",))]),
        ("It is old.\n[S1]\n", [("It is old.", "It is old.", ())]),
        ("- It is old [S1]\n12. So be it", [("It is old [S1]", "It is old", ("S1",)), ("So be it", "So be it", ())]),
        ("* [S1] It is old", [("[S1] It is old", "It is old", ("S1",))]),
        ("## About Oslo\r\nIt is old", [("About Oslo", "About Oslo", ()), ("It is old", "It is old", ())]),
        ("It is [sic] old [s1] [S] [S1,] [].", [("It is [sic] old [s1] [S] [S1,] [].",) * 2 + ((),)]),
        ("Yes. Is it old? [S1] — . It is 5 m.", [("It is 5 m.", "It is 5 m.", ())]),
        (
            "𝕆slo är gammalt 🏰 [S1]. Ja, så är det.",
            [("𝕆slo är gammalt 🏰 [S1].", "𝕆slo är gammalt 🏰.", ("S1",)), ("Ja, så är det.", "Ja, så är det.", ())],
        ),
    ],
)
def test_examples(draft: str, expected: list[tuple[str, str, tuple[str, ...]]]) -> None:
    assert claims(draft) == expected


def test_markers_of_the_plan_are_known_and_others_are_text() -> None:
    draft = "It is old [doc-3]. It is big [7, doc-3]. So be it [8]."
    assert claims(draft, "doc-3", "7") == [
        ("It is old [doc-3].", "It is old.", ("doc-3",)),
        ("It is big [7, doc-3].", "It is big.", ("7", "doc-3")),
        ("So be it [8].", "So be it [8].", ()),
    ]
    spans = (PlanSpan("a", "x", markers=("[doc-3]", "7")), PlanSpan("b", "y"))
    decomposer = SentenceDecomposer()
    (known, blank) = decomposer.decompose([Draft("d", draft, spans=spans), Draft("e", " ")])
    assert [claim.cited_markers for claim in known.claims] == [("doc-3",), ("7", "doc-3"), ()]
    assert blank.claims == () and blank.unavailable is None
    assert decomposer.model == "sentences" and decomposer.prompt_hash == ""
    assert decomposer.identify() == {"model": "sentences", "revision": decomposer.revision}


PIECES = st.sampled_from(
    [
        *"ab.?!,;\n\r\t -*#[]()\"'",
        "Oslo ",
        "is ",
        "Dr. ",
        "3.5",
        "2. ",
        "🏰",
        "é",
        "[S1]",
        " [S2] ",
        "[S1, S9]",
        "[k]",
        ". It ",
        "。",
        "\u2028",
    ]
)
DRAFTS = st.lists(PIECES, max_size=40).map("".join) | st.text(max_size=60)
MARKERS = re.compile(r"\[\s*(?:S[0-9]+|k)\s*(?:[,;]\s*(?:S[0-9]+|k)\s*)*\]")


def squeezed(text: str) -> str:
    return "".join(MARKERS.sub("", text).split())


@given(DRAFTS)
@example("[S1] - [S2] a b")
@example("a b [S1")
@example("a [S1][S2]. [S1]\n[S2]")
def test_ranges_are_exact_ordered_and_disjoint(draft: str) -> None:
    found = list(claims_of_sentences(draft, {"k"}))
    check_draft(Draft("d", draft, tuple(found)))
    end = 0
    for claim in found:
        start, stop = claim.draft_span
        assert end <= start < stop <= len(draft)
        end = stop
        taken = draft[start:stop]
        assert "\n" not in taken and taken == taken.strip()
        assert squeezed(taken) == squeezed(claim.text) == "".join(claim.text.split())
        if not MARKERS.search(taken):
            assert taken == claim.text
        named = [name for group in MARKERS.findall(taken) for name in re.findall("S[0-9]+|k", group)]
        assert set(named) <= set(claim.cited_markers)
        assert len(set(claim.cited_markers)) == len(claim.cited_markers)


@given(st.lists(st.sampled_from(["Oslo is old", "It has 3 hills", "Nobody left"]), min_size=1, max_size=6))
def test_markers_behind_a_sentence_are_its_own(texts: list[str]) -> None:
    draft = " ".join(f"{text} [S{number}]." for number, text in enumerate(texts, 1))
    assert [(text, markers) for _, text, markers in claims(draft)] == [
        (f"{text}.", (f"S{number}",)) for number, text in enumerate(texts, 1)
    ]


def test_a_redacted_sentence_takes_its_markers_along() -> None:
    draft = "It is old [S1]. It is big. [S2] So be it."
    found = list(claims_of_sentences(draft))

    class Judged:
        def __init__(self, claim: DraftClaim) -> None:
            self.draft_span, self.verdict = claim.draft_span, Verdict.UNSUPPORTED

    assert redact(draft, [Judged(found[1])]) == "It is old [S1]. [unsupported claim removed] So be it."


@pytest.mark.parametrize("piece", ["[", "[S1]", " ", "[S1 ", "a [S1]. ", "- ", '"', "a b. "])
def test_time_is_linear_in_the_draft(piece: str) -> None:
    def seconds(times: int) -> float:
        start = time.process_time()
        list(claims_of_sentences(piece * times))
        return time.process_time() - start

    seconds(10)
    assert seconds(32_000) < 8 * seconds(8_000) + 0.3


@pytest.mark.parametrize("module", [answer, sentences])
def test_the_worked_examples(module: ModuleType) -> None:
    results = doctest.testmod(module)
    assert results.failed == 0 and results.attempted > 0
