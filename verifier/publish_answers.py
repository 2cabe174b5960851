"""What a finished run on answers shows: tables, report, tracked figures, and where everything is."""

from collections.abc import Mapping
from typing import Any

from verifier.answers.tables import write_tables
from verifier.live import LiveRun
from verifier.publish import published_run, show_locations
from verifier.report.answers import write_answer_report
from verifier.terminal import show_answers


def publish_answers(run_dir: str, run: Mapping[str, Any], live: LiveRun) -> None:
    """Write tables and report and track the run, once; print verdicts and locations."""
    write_tables(run_dir, with_traces="corpus" not in run["counts"])
    published = published_run(run_dir, run, live, write_answer_report, {})
    show_answers(run["counts"])
    show_locations(run_dir, run, published)
