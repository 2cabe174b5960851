"""Targets: the HTML reports, which show anybody's text."""

import json
import shutil
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests import answers_fixture, run_fixture
from tests.fuzz.registry import target
from tests.fuzz.strategies import safe_text, text, value
from verifier.answers.records import CheckedAnswer, CheckedClaim, Cited, unavailable
from verifier.fusion.redaction import NOTICE
from verifier.protocol import Outcome, PairError
from verifier.records import Claim, Evidence, Status
from verifier.redaction import without_secrets
from verifier.report import write_report
from verifier.report.answers import write_answer_report
from verifier.report.rendering import HIDDEN

TAGS = frozenset(
    "html head meta title style body h1 h2 h3 h4 p b s a div span nav table thead tr th td img pre code details summary"
    " article header blockquote ol li mark sup".split()
)
ATTRIBUTES = frozenset("lang charset name content http-equiv class style href id src width alt title dir".split())
HOSTILE = "zq9<script>alert(1)</script>\"><img src=x onerror=alert(1)>'--></style>javascript:{{ 7*7 }}"


class Strict(HTMLParser):
    """Raises for any tag, attribute or address that is not of the templates' own; keeps the text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text: list[str] = []
        self.inside = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, tag
        self.inside = tag
        for name, content in attrs:
            assert name in ATTRIBUTES, name
            assert "zq9" not in (content or ""), (name, content)
            if name == "href":
                assert (content or "").startswith("#"), content
            if name == "src":
                assert (content or "").startswith("data:image/png;base64,"), content
            if name == "style":
                assert not {"url", "expression", "@import"} & set((content or "").replace("(", " ").split()), content

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data!r}")

    def handle_pi(self, data: str) -> None:
        raise AssertionError(f"a processing instruction: {data!r}")

    def handle_data(self, data: str) -> None:
        assert self.inside != "style" or "zq9" not in data
        self.text.append(data)

    def handle_endtag(self, tag: str) -> None:
        assert tag in TAGS, tag
        self.inside = ""


def strict(report: Path, told: str) -> None:
    """Read a report; ``told`` stands in it, as text and only as text."""
    page = Strict(report.read_text(encoding="utf-8"))
    shown = "".join(page.text)
    assert HOSTILE in shown
    words = told.translate(HIDDEN).split()
    assert not words or words[0][:30] in shown


_hostile = st.one_of(safe_text, safe_text.map(lambda piece: HOSTILE + piece)).map(lambda piece: piece.strip() or "x")
_run = st.dictionaries(
    st.sampled_from(["config", "timings", "counts", "input", "model", "versions", "x"]),
    st.one_of(
        value, st.dictionaries(st.one_of(text, st.sampled_from(["verify", "policy", "model"])), value, max_size=2)
    ),
    max_size=4,
)


@target(st.tuples(st.lists(_hostile, min_size=8, max_size=8), _run), share=0.02)
def verification_reports(data: tuple[list[str], dict[str, Any]]) -> None:
    words, run = data
    claim = Claim(words[0], words[1], (Evidence(words[2], words[3]), Evidence("b", HOSTILE)), False, *words[4:7])
    other = Claim("other", HOSTILE, claim.evidence, False, words[5], HOSTILE)
    failed = Outcome(None, (), PairError("unscored", words[6], words[7]))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [
            run_fixture.row_of(claim, run_fixture.make_outcome(claim, Status.CONTESTED, (0.9, 0.05)), 0),
            run_fixture.row_of(other, failed, 1),
        ]
        reject = dict.fromkeys(("claim_id", "source", "code", "message", "raw"), words[7]) | {"row_id": 2}
        run_fixture.write_run(folder, rows, [reject], **run)
        run_fixture.write_work(folder, [claim, other])
        strict(write_report(folder), words[1])


@target(st.tuples(st.lists(_hostile, min_size=6, max_size=6), _run), share=0.02)
def answer_reports(data: tuple[list[str], dict[str, Any]]) -> None:
    words, run = data
    text = f"{words[0]} {HOSTILE}"
    cited = (Cited(words[1], "best", 0.5, words[2]), Cited(HOSTILE, "supports", float("nan"), HOSTILE))
    claims = (
        CheckedClaim(words[3], 0, len(words[0]), "unsupported", 0.1, True, (words[4],), (words[4],), cited),
        CheckedClaim(HOSTILE, 0, len(text), "partial", float("inf"), evidence=cited),
    )
    checked = CheckedAnswer("verified", f"{NOTICE} {HOSTILE}", claims)
    lost = CheckedAnswer(f"unavailable: {words[5]}", None, error=unavailable(words[5]))
    with tempfile.TemporaryDirectory() as name:
        rows = [
            answers_fixture.row_of(0, text, checked, answer_id=words[5], category=words[4], scope=words[3]),
            answers_fixture.row_of(1, HOSTILE, lost, category=HOSTILE),
        ]
        reject = dict.fromkeys(("claim_id", "source", "code", "message", "raw"), words[1]) | {"row_id": 2}
        answers_fixture.write_run(Path(name), rows, [reject], **run)
        strict(write_answer_report(Path(name)), words[0])


@target(st.tuples(st.binary(max_size=40), _run), share=0.02)
def damaged_run_files(data: tuple[bytes, dict[str, Any]]) -> None:
    """A report of a run whose run.json is anything."""
    raw, run = data
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "run.json").write_bytes(raw if raw[:1] == b"\0" else json.dumps(run).encode() + raw)
        Strict(write_report(folder).read_text(encoding="utf-8"))
        shutil.rmtree(folder / "pictures")


_SECRET = "hunter2hunter2"
_secret_names = st.sampled_from(
    "api_key apiKey API-KEY token auth_token aws_secret_access_key password db.password client_secret Authorization"
    " passwd credentials session_token secrets".split()
)


@target(st.tuples(_secret_names, st.dictionaries(safe_text, value, max_size=3), safe_text), share=3)
def secrets(data: tuple[str, dict[str, Any], str]) -> None:
    """No secret is left, and nothing else is touched."""
    name, rest, word = data
    rest = {key: one for key, one in rest.items() if "://" not in repr(one)}
    user = "".join(character for character in word if character.isalnum())
    config = {
        "rest": rest,
        "deep": [{name: _SECRET, "max_tokens": 128, "api_key_env": "THE_VARIABLE"}],
        "uri": f"postgresql://{user}:{_SECRET}@host/db",
        "query": f"http://host/x?a=1&{name}={_SECRET}&b=2",
        "listed": {name: [_SECRET, {"x": _SECRET}]},
    }
    shown = without_secrets(config)
    assert _SECRET not in repr(shown)
    assert shown["deep"][0]["max_tokens"] == 128 and shown["deep"][0]["api_key_env"] == "THE_VARIABLE"
    assert shown["uri"] == "postgresql://***@host/db" and shown["query"].endswith("&b=2")
    assert config["deep"][0][name] == _SECRET
