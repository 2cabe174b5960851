import json
import shutil
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest

from tests.run_fixture import POLICY, make_claim, make_outcome, make_run, row_of, write_run, write_work
from verifier.metrics import STATUSES
from verifier.protocol import Outcome, PairError, ScoredPair
from verifier.records import Claim, Evidence, Status
from verifier.report import report_pictures, write_report
from verifier.report.examples import AT_MOST, pick_examples
from verifier.report.figures import BINS, gather

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{ 7*7 }} $\\frac$ \u202e"


class Page(HTMLParser):
    """What a browser would make of a report: its elements, anchors, links and text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.sources: list[str] = []
        self.text = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.add(name)
            kept = {"id": self.ids, "href": self.links, "src": self.sources}.get(name)
            if kept is not None:
                kept.append(value or "")

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("run"), 300)


def read(path: Path) -> Page:
    """Parse a report and hold it to what every report must keep."""
    page = Page(path)
    assert "script" not in page.tags and not any(name.startswith("on") for name in page.attributes)
    assert all(source.startswith("data:image/png;base64,") for source in page.sources)  # opens offline
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    assert len(page.ids) == len(set(page.ids))
    return page


def test_a_report_of_a_run(run_dir: Path) -> None:
    report = write_report(run_dir)
    page = read(report)
    assert report == run_dir / "report.html"
    for words in ("303", POLICY.model, POLICY.revision, "Confusion matrix", "balanced accuracy", "speech-act trap"):
        assert words in page.text
    assert "according to the duty officer's notes" in page.text  # evidence, from work/
    assert "line 12 is not JSON" in page.text and "pair_too_long" in page.text
    assert "torch" in page.text and '"entailment_threshold": 0.8' in page.text
    assert "#row-11" in page.links and len(page.sources) == 3
    assert "Where the time went" in page.text
    names = [path.name for path in report_pictures(run_dir)]
    assert names == ["confusion.png", "scores.png", "time.png", "verdicts.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in report_pictures(run_dir))


def test_figures_add_up(run_dir: Path) -> None:
    figures = gather(run_dir)
    assert figures.claims == 303 == sum(figures.verdicts.values())
    assert figures.decided == sum(figures.verdicts[status] for status in STATUSES) == 290
    assert (figures.verdicts["rejected"], figures.verdicts["unscored"]) == (3 + 5, 5)
    assert figures.metrics is not None and figures.metrics.labelled == 300
    assert sum(category.claims for category in figures.categories) == 300
    assert sum(figures.histograms["entailment"]) == figures.pairs > 0
    seconds = figures.slowest["seconds"].to_list()
    assert len(seconds) == 10 and seconds == sorted(seconds, reverse=True)
    assert [reject["count"] for reject in figures.rejects] == [5, 5, 2, 1]


def test_examples_cover_every_label_and_status(run_dir: Path) -> None:
    picked = pick_examples(run_dir)
    assert len(picked.row_ids) <= AT_MOST and ("supported", "supported") in picked.first
    assert set(picked.first.values()) <= set(picked.row_ids)


def test_everything_from_data_is_escaped(tmp_path: Path) -> None:
    claim = Claim(EVIL, EVIL, (Evidence(EVIL, EVIL), Evidence("b", "c")), False, EVIL, EVIL, EVIL)
    outcome = make_outcome(claim, Status.CONTESTED, (0.9, 0.05))
    failed = Outcome(None, (), PairError("unscored", EVIL, EVIL))
    rows = [row_of(claim, outcome, 0), row_of(claim, failed, 1)]
    reject = {"row_id": 2, "claim_id": EVIL, "source": EVIL, "code": EVIL, "message": EVIL, "raw": EVIL}
    write_run(
        tmp_path,
        rows,
        [reject],
        config={EVIL: EVIL, "tracking": {"uri": "http://me:secret@host/x"}},
        model={"model": EVIL, "revision": EVIL, "dtype": EVIL},
        timings={EVIL: EVIL, "verify_seconds": 2},
        counts={EVIL: EVIL},
        input={EVIL: [EVIL]},
        versions={EVIL: EVIL},
    )
    write_work(tmp_path, [claim])
    page = read(write_report(tmp_path))
    assert page.text.count("<script>alert(1)</script>") >= 10
    assert "{{ 7*7 }}" in page.text and "49" not in page.text
    assert "secret" not in page.text


def test_no_labels_no_categories_no_run_json_no_work(tmp_path: Path) -> None:
    claims = [make_claim(n) for n in range(5)]
    rows = [row_of(claim, make_outcome(claim, Status.SUPPORTED, (0.9, 0.05)), n) for n, claim in enumerate(claims)]
    page = read(write_report(write_run(tmp_path, rows)))
    assert "Confusion" not in page.text and "Categories" not in page.text
    assert "does not name the model" in page.text
    assert [path.name for path in report_pictures(tmp_path)] == ["scores.png", "verdicts.png"]


def test_labels_of_another_kind(tmp_path: Path) -> None:
    claims = [make_claim(n, "partially_supported") for n in range(3)]
    rows = [row_of(claim, make_outcome(claim, Status.REFUTED, (0.1, 0.85)), n) for n, claim in enumerate(claims)]
    page = read(write_report(write_run(tmp_path, rows)))
    assert "The labels are not statuses" in page.text and "accuracy over all statuses" not in page.text


@pytest.mark.parametrize(
    "run_json",
    [
        None,
        "{not json",
        "[1]",
        '{"config": 3, "timings": [1], "model": null}',
        '{"timings": {"load_seconds": "x", "plan_seconds": -1, "model_seconds": 1e400, "write_seconds": NaN}}',
    ],
)
def test_an_empty_run(tmp_path: Path, run_json: str | None) -> None:
    if run_json is not None:
        (tmp_path / "run.json").write_text(run_json)
    page = read(write_report(tmp_path))
    assert "This run has no claims." in page.text and "Nothing was rejected." in page.text
    assert report_pictures(tmp_path) == []


def test_everything_rejected(tmp_path: Path) -> None:
    claim = make_claim(0, "supported")
    refused = Outcome(None, (), PairError("rejected", "pair_too_long", "the claim does not fit"))
    reject = {"row_id": 1, "claim_id": None, "source": "a:1", "code": "c", "message": "m", "raw": ""}
    line = reject | {"row_id": None}  # of an evidence table
    page = read(write_report(write_run(tmp_path, [row_of(claim, refused, 0)], [reject, line])))
    assert "No pair was scored." in page.text and "0 of 1 labelled claims were decided" in page.text
    figures = gather(tmp_path)
    assert (figures.claims, figures.verdicts["rejected"], figures.rejected_lines) == (2, 2, 1)
    assert "1 of these rows belong to no single claim" in page.text


def test_scores_of_the_grounding_kind_and_cuts(tmp_path: Path) -> None:
    claim = make_claim(0)
    pairs = tuple(
        ScoredPair("joined", ("a",), "p", "h", {"support": value, "cosine": 1.0}, 0, 2, True)
        for value in (0.0, 0.5, 1.0)
    )
    rows = [row_of(claim, Outcome(make_outcome(claim, Status.SUPPORTED, (0.9, 0.0)).verification, pairs), 0)]
    write_run(tmp_path, rows)
    figures = gather(tmp_path)
    assert list(figures.histograms) == ["support", "cosine"] and len(figures.histograms["support"]) == BINS
    assert figures.histograms["support"][-1] == 1 and figures.histograms["cosine"][-1] == 3
    assert (figures.windowed, figures.truncated) == (3, 3)
    assert "Premises cut short: 3" in read(write_report(tmp_path)).text


def test_writing_elsewhere_and_again(run_dir: Path, tmp_path: Path) -> None:
    report = write_report(run_dir, tmp_path / "out")
    assert report == tmp_path / "out" / "report.html" and len(report_pictures(tmp_path / "out")) == 4
    copy = shutil.copytree(run_dir, tmp_path / "copy")
    shutil.rmtree(copy / "results")
    write_report(copy)
    assert [path.name for path in report_pictures(copy)] == ["time.png", "verdicts.png"]  # none of the earlier report
    with pytest.raises(ValueError, match="out_dir"):
        write_report("s3://bucket/run")


def test_work_without_evidence_text(run_dir: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run_dir, tmp_path / "copy")
    file = copy / "work" / "0.parquet"
    pl.read_parquet(file).drop("evidence").write_parquet(file)
    (copy / "run.json").write_text(json.dumps({"timings": {"verify_seconds": 2}}))
    assert "145.0" in read(write_report(copy)).text  # 290 decided in 2 s
    (copy / "run.json").write_text(json.dumps({"timings": {"verify_seconds": 2}, "this_session": {"claims": 90}}))
    assert "45.0" in read(write_report(copy)).text  # it went on from 200
