import json
import random
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.answers_fixture import claim, fusion_rows, many_rows, receipt_rows, row_of, write_run
from tests.test_report import EVIL, read
from verifier.answers.records import CheckedAnswer, CheckedClaim, Cited, unavailable
from verifier.fusion.redaction import NOTICE
from verifier.protocol import PairError
from verifier.report.answer_examples import ANSWER_SHOWN, AT_MOST, CLAIMS_SHOWN, pick_answers
from verifier.report.answer_figures import FUSION_VERDICTS, RECEIPT_VERDICTS, WORST_FIRST, gather_answers
from verifier.report.answers import write_answer_report
from verifier.report.highlight import pieces
from verifier.report.pictures import COLOURS
from verifier.report.rendering import report_pictures

FUSION = {"check": {"method": "fusion", "policy": "redact", "supported": 0.75, "partial": 0.5}}
RECEIPTS = {"check": {"method": "receipts", "min_score": 0.2, "grounded_at": 1.0}}


class Marks(HTMLParser):
    """The coloured pieces of the answers on a page: verdict, text, and the numbers of the claims."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.found: list[tuple[str, str, str]] = []
        self._inside = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "mark" and "id" in values:  # those of the legend have none
            self.found.append(((values["class"] or "").removeprefix("v-"), "", ""))
            self._inside = tag
        elif tag == "sup":
            self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        if tag == self._inside:
            self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside:
            verdict, text, numbers = self.found.pop()
            in_mark = self._inside == "mark"
            self.found.append((verdict, text + data * in_mark, numbers + data * (not in_mark)))


def test_a_run_of_fusion(tmp_path: Path) -> None:
    reject = {"row_id": 9, "claim_id": "answer-9", "source": "a.jsonl:10", "code": "empty_claim", "raw": "{}"}
    reject["message"] = "claim 1 has no text"
    model = {"model": "minilm", "revision": "abc", "dtype": "float32"}
    run_dir = write_run(tmp_path, fusion_rows(), [reject], config=FUSION, model=model, timings={"verify_seconds": 2})
    report = write_answer_report(run_dir)
    page = read(report)
    assert report == tmp_path / "report.html"
    assert [path.name for path in report_pictures(tmp_path)] == ["scores.png", "verdicts.png"]
    assert Marks(report).found == [
        ("supported", "It opened in 1932", "1"),
        ("evidence_redacted", "is blue", "2"),
        ("unsupported", "It is tall.", "3"),
        ("partial", "So far.", "1"),
    ]
    for words in (
        "minilm",
        "scope team-a",
        "cites S1, S9 (names no span)",
        "lacks a number of the claim",
        "best span · span-7",
        "Opened in March 1932 by the mayor.",
        "There was no span to match it with.",
        f"It opened in 1932 and is blue. {NOTICE}",
        "unavailable: the embedder is not registered",
        "Nothing: the policy cuts out what is not supported",
        "(empty)",
        "claim 1 has no text",
        "the beginning of 2 of its texts",
        '"policy": "redact"',
    ):
        assert words in page.text, words
    assert "s" in page.tags  # the marker that names no span is struck
    assert {"#row-0", "#claim-0-3", "#piece-0-2"} <= set(page.links)
    figures = gather_answers(run_dir, receipts=False)
    assert figures.states == {"verified": 3, "unknown": 0, "unavailable": 1, "rejected": 1} and figures.answers == 5
    assert (figures.claims, figures.redacted, figures.withheld, figures.truncated) == (4, 1, 1, 2)
    assert figures.verdicts == dict.fromkeys(FUSION_VERDICTS, 1) and figures.grounded == {}
    assert [(one.name, one.answers, one.not_verified, one.claims) for one in figures.categories] == [
        ("(none)", 2, 0, 1),
        ("bridges", 2, 1, 3),
    ]


def test_a_run_of_receipts(tmp_path: Path) -> None:
    run_dir = write_run(tmp_path, receipt_rows(), config=RECEIPTS)
    page = read(write_answer_report(run_dir))
    assert [path.name for path in report_pictures(tmp_path)] == ["grounded.png", "scores.png", "verdicts.png"]
    for words in (
        "supports · kb-1 · cosine 0.810",
        "contradicts · kb-2 · cosine 0.720 · entailment 0.010 · contradiction 0.970",
        "It does not work.",
        "Grounded: 50.0% of its claims.",
        "Nothing that was retrieved supports or contradicts it.",
        "unknown: the answer has no claims",
        "pair_too_long: the claim does not fit",
        "grounded from 100.0%",
    ):
        assert words in page.text, words
    assert "0.123" not in page.text  # of a part of a score
    figures = gather_answers(run_dir, receipts=True)
    assert figures.verdicts == {"supported": 1, "contradicted": 0, "conflicting": 1, "unverified": 1}
    assert {name: n for name, n in figures.grounded.items() if n} == {"50 % to 75 %": 1, "all": 1, "unknown": 1}
    assert (figures.is_grounded, figures.states["unknown"], figures.states["rejected"]) == (1, 1, 1)
    assert figures.histograms["unverified"][0] == 1  # a cosine below 0


def test_claims_that_share_words(tmp_path: Path) -> None:
    text = "Curie, born in Warsaw, won two prizes."
    claims = (
        claim(text, "Curie, born in Warsaw", "supported", text="Curie was born in Warsaw."),
        claim(text, text, "partial", text="Curie won two prizes."),
        claim(text, "two prizes", "unsupported"),
        claim(text, "two prizes", "supported"),
    )
    report = write_answer_report(write_run(tmp_path, [row_of(0, text, CheckedAnswer("verified", text, claims))]))
    assert Marks(report).found == [
        ("partial", "Curie, born in Warsaw", "12"),
        ("partial", ", won ", "2"),
        ("unsupported", "two prizes", "234"),
        ("partial", ".", "2"),
    ]
    assert "Curie was born in Warsaw." in read(report).text


@given(st.data())
def test_pieces_hold_the_text_and_the_worst_verdict(data: st.DataObject) -> None:
    text = data.draw(st.text(max_size=20))
    edge = st.integers(-3, len(text) + 3)
    claims = data.draw(st.lists(st.tuples(edge, edge, st.sampled_from(WORST_FIRST)), max_size=6))
    found = pieces(text, claims)
    assert "".join(piece.text for piece in found) == text and all(piece.text for piece in found)
    place = 0
    for piece in found:
        for position in range(place, place + len(piece.text)):
            over = [number for number, (start, end, _) in enumerate(claims, 1) if start <= position < end]
            assert list(piece.numbers) == over
        worst = min((WORST_FIRST.index(claims[number - 1][2]) for number in piece.numbers), default=None)
        assert piece.verdict == (None if worst is None else WORST_FIRST[worst])
        place += len(piece.text)


def test_every_verdict_has_a_colour_and_a_rank() -> None:
    verdicts = {*FUSION_VERDICTS, *RECEIPT_VERDICTS}
    assert verdicts == set(WORST_FIRST) and verdicts <= set(COLOURS)
    for of_one_run in (FUSION_VERDICTS, RECEIPT_VERDICTS):
        assert len({COLOURS[verdict] for verdict in of_one_run}) == 4


def test_everything_from_data_is_escaped(tmp_path: Path) -> None:
    text = f"{EVIL}\0 one. {NOTICE} two.\r\n\ttwo"
    cited = Cited(EVIL, "best", 0.5, EVIL)
    claims = (
        claim(text, EVIL, "supported", cited_markers=(EVIL,), unresolved_markers=(EVIL,), evidence=(cited,)),
        claim(text, " one.", EVIL, evidence=(Cited(EVIL, "supports", 0.5, EVIL),)),  # no verdict of ours
    )
    failed = PairError("unscored", EVIL, EVIL)
    more = {"category": EVIL, "scope": EVIL}
    rows = [
        row_of(0, text, CheckedAnswer("verified", text + EVIL, claims), answer_id=EVIL, **more),
        row_of(1, EVIL, CheckedAnswer(EVIL, None, error=failed), answer_id=EVIL + "2", **more),
    ]
    reject = {"row_id": 2, "claim_id": EVIL, "source": EVIL, "code": EVIL, "message": EVIL, "raw": EVIL}
    config = {"check": {"method": EVIL, "supported": EVIL}, "tracking": {"uri": "http://me:secret@host/x"}}
    run = {"config": config, "model": {"model": EVIL}, "counts": {EVIL: EVIL}, "versions": {EVIL: EVIL}}
    report = write_answer_report(write_run(tmp_path, rows, [reject], **run))
    page = read(report)
    assert page.text.count("<script>alert(1)</script>") >= 20
    assert "{{ 7*7 }}" in page.text and "secret" not in page.text
    html = report.read_text(encoding="utf-8")
    assert "\0" not in html and "\u202e" not in html and "\ufffd one." in page.text


def test_a_long_answer_is_cut_at_a_claim(tmp_path: Path) -> None:
    sentence = "The pump of this station runs at a thousand turns. "
    text = sentence * 2000  # 100,000 characters and more
    claims = tuple(
        CheckedClaim(sentence.strip(), start, start + len(sentence) - 1, "supported", 0.9)
        for start in range(0, len(text), len(sentence))
    )
    report = write_answer_report(write_run(tmp_path, [row_of(0, text, CheckedAnswer("verified", text + text, claims))]))
    page = read(report)
    shown = ANSWER_SHOWN // len(sentence)
    assert len(Marks(report).found) == shown < CLAIMS_SHOWN
    assert all(mark[1] == sentence.strip() for mark in Marks(report).found)
    left = f"{len(text) - shown * len(sentence):,}".replace(",", "\u202f")
    assert f"Cut here: {left} more characters are not shown." in page.text
    assert "1\u202f883 more claims are not shown." in page.text
    assert report.stat().st_size < 400_000


def test_an_answer_of_very_many_claims_and_passages(tmp_path: Path) -> None:
    evidence = tuple(Cited(f"p{n}", "supports", 0.5, "x" * 5000) for n in range(9))
    one = CheckedClaim("So it is.", 0, 9, "supported", 0.9, False, ("S1",) * 50, (), evidence)
    report = write_answer_report(
        write_run(tmp_path, [row_of(0, "So it is.", CheckedAnswer("verified", "So it is.", (one,) * 3000))])
    )
    page = read(report)
    assert "2\u202f880 more claims are not shown." in page.text and "3 more passages." in page.text
    assert Marks(report).found == [("supported", "So it is.", "123456+114")]
    assert report.stat().st_size < 1_500_000


@pytest.mark.parametrize("run_json", ["{not json", "[1]", '{"config": 3}', json.dumps({"config": RECEIPTS})])
def test_an_empty_run(tmp_path: Path, run_json: str) -> None:
    (tmp_path / "run.json").write_text(run_json)
    page = read(write_answer_report(tmp_path))
    assert "This run has no answers." in page.text and "Nothing was rejected." in page.text
    assert report_pictures(tmp_path) == []


def test_answers_without_claims(tmp_path: Path) -> None:
    lost = unavailable("no claims in 3 attempts")
    rows = [row_of(n, "Text.", CheckedAnswer("unavailable: …", "Text.", error=lost)) for n in range(9)]
    page = read(write_answer_report(write_run(tmp_path, rows, config=FUSION)))
    assert "This run has no claims." in page.text and "No claim was scored." in page.text
    assert page.text.count("unavailable: no claims in 3 attempts") == 3  # a few of each error
    assert "3 of 9 answers are shown" in page.text and "6 are left out" in page.text


def test_a_large_run_stays_small(tmp_path: Path) -> None:
    rows = many_rows(4000)
    run_dir = write_run(tmp_path / "a", rows, config=FUSION)
    report = write_answer_report(run_dir)
    assert report.stat().st_size < 600_000
    page = read(report)
    assert "40 of 4\u202f000 answers are shown" in page.text and "140 smaller categories are left out" in page.text
    picked = pick_answers(run_dir, [])
    assert len(picked.row_ids) == AT_MOST and list(picked.row_ids) == sorted(picked.row_ids)
    for kind in picked.kinds:  # at least one of each
        assert set(kind.row_ids) & set(picked.row_ids)
    assert sum(kind.answers for kind in picked.kinds) == 4000
    assert len({0, 50, 100, 150} & set(picked.row_ids)) == 3
    # The same answers in another order of files and rows give the same page.
    random.Random(1).shuffle(rows)
    again = write_answer_report(write_run(tmp_path / "b", rows, config=FUSION))
    ends = [path.read_text().split('<h2 id="rejects">')[0] for path in (report, again)]
    assert ends[0] == ends[1]


def test_writing_elsewhere(tmp_path: Path) -> None:
    run_dir = write_run(tmp_path / "run", fusion_rows())
    report = write_answer_report(run_dir, tmp_path / "out")
    assert report == tmp_path / "out" / "report.html" and len(report_pictures(tmp_path / "out")) == 2
    assert not (run_dir / "report.html").exists()
    with pytest.raises(ValueError, match="out_dir"):
        write_answer_report("s3://bucket/run")
