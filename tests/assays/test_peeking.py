"""Every way to peek at a sealed cohort is refused with a sentence, before and after a failed calibration."""

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.assays.assay_files import cohort, fever_rows, form, registered, write_rows
from tests.assays.sealed_place import GATES, WRONG, Place
from verifier.assays.actions import compare_action
from verifier.assays.ledger import read_ledger
from verifier.assays.opening import open_cohort
from verifier.assays.reproducing import PublishedAssay, reproduce
from verifier.assays.sealing import SealedCohort, refuse_sealed, refuse_sealed_claims, refuse_sealed_texts
from verifier.assays.unlocking import record_calibration, unlock
from verifier.calibration.inputs import Input, read_input
from verifier.digests import sha256_file
from verifier.records import Claim
from verifier.schemas import WORK_SCHEMA, work_row


def by_path(place: Place) -> None:
    refuse_sealed(place.file, place.ledger)


def by_path_among_others(place: Place) -> None:
    refuse_sealed([str(place.folder / "calibration.jsonl"), str(place.file)], place.ledger)


def by_digest(place: Place) -> None:
    refuse_sealed(sha256_file(place.file), str(place.ledger))


def by_folder(place: Place) -> None:
    refuse_sealed(place.folder, place.ledger)


def by_pattern(place: Place) -> None:
    refuse_sealed(f"{place.folder}/*.jsonl", place.ledger)


def by_uri(place: Place) -> None:
    refuse_sealed(place.file.as_uri(), place.ledger)


def by_a_link(place: Place) -> None:
    (place.folder / "link.jsonl").symlink_to(place.file)
    refuse_sealed(place.folder / "link.jsonl", place.ledger)


def by_a_copy(place: Place) -> None:
    shutil.copy(place.file, place.folder / "harmless.jsonl")
    refuse_sealed(place.folder / "harmless.jsonl", place.ledger)


def by_a_compressed_copy(place: Place) -> None:
    (place.folder / "copy.gz").write_bytes(gzip.compress(place.file.read_bytes()))
    refuse_sealed(place.folder / "copy.gz", place.ledger)


def by_a_copy_in_two_gzip_members(place: Place) -> None:
    content = place.file.read_bytes()
    (place.folder / "copy.gz").write_bytes(gzip.compress(content[:100]) + gzip.compress(content[100:]))
    refuse_sealed(place.folder / "copy.gz", place.ledger)


def by_a_compressed_copy_with_a_tail(place: Place) -> None:
    (place.folder / "copy.gz").write_bytes(gzip.compress(place.file.read_bytes()) + b"no member")
    refuse_sealed(place.folder / "copy.gz", place.ledger)


def by_a_run_on_the_file(place: Place) -> None:
    refuse_sealed(run_dir(place, [{"sha256": sha256_file(place.file)}], []), place.ledger)


def by_a_run_on_the_same_claims(place: Place) -> None:
    refuse_sealed(run_dir(place, [{"sha256": "0" * 64}], place.claims()), place.ledger)


def by_a_run_that_was_only_prepared(place: Place) -> None:
    folder = run_dir(place, [], place.claims())
    (folder / "run.json").unlink()
    refuse_sealed(folder, place.ledger)


def by_comparing_a_run(place: Place) -> None:
    folder = run_dir(place, [{"sha256": sha256_file(place.file)}], [])
    compare_action(str(folder), str(folder), 0, str(place.ledger), str(place.folder / "out"))


def run_dir(place: Place, inputs: list[dict[str, str]], claims: list[Claim]) -> Path:
    folder = place.folder / "run"
    (folder / "work").mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"input": {"inputs": inputs}}), "utf-8")
    rows = [work_row(number, claim) for number, claim in enumerate(claims)]
    pq.write_table(pa.Table.from_pylist(rows, schema=WORK_SCHEMA), folder / "work" / "part-00000.parquet")
    return folder


def by_claims(place: Place) -> None:
    refuse_sealed_claims(place.claims()[-1:], place.ledger)


def by_texts(place: Place) -> None:
    refuse_sealed_texts([("x", []), *((one.claim, [one.evidence[0].text]) for one in place.claims())], place.ledger)


def by_calibrating_on_a_table(place: Place) -> None:
    rows = [row | {"score": 0.5} for row in fever_rows("red")]
    read_input(Input(table=str(write_rows(place.folder / "table.jsonl", rows))), ledger=str(place.ledger))


def by_calibrating_on_a_table_of_joined_lines(place: Place) -> None:
    rows = [row | {"score": 0.5, "evidence": "\n".join(row["evidence"])} for row in fever_rows("red")]
    path = place.folder / "table.parquet"
    pl.DataFrame(rows).write_parquet(path)
    read_input(Input(table=str(path)), ledger=str(place.ledger))


def by_opening(place: Place) -> None:
    open_cohort(place.registration.cohort, read_ledger(place.ledger))


def by_opening_another_format(place: Place) -> None:
    rows = [{"dataset": "d", "doc": row["evidence"][0], "claim": row["claim"], "label": 1} for row in fever_rows("red")]
    path = place.folder / "converted.parquet"
    pl.DataFrame(rows).write_parquet(path)
    registered(place.folder, "peek", form(path, cohort=cohort(path, form="aggrefact")))


def by_running(place: Place) -> None:
    place.run()


def by_registering_unsealed(place: Place) -> None:
    registered(place.folder, "peek", form(place.file))


def by_registering_reformatted(place: Place) -> None:
    rows = [row | {"id": f"x{row['id']}", "claim": f"  {row['claim']} "} for row in fever_rows("red")]
    registered(place.folder, "peek", form(write_rows(place.folder / "other.jsonl", rows)))


def by_calibrating_on_it(place: Place) -> None:
    others = write_rows(place.folder / "green.jsonl", fever_rows("green"))
    fields = {"sealed": True, "calibration": {"cohort": cohort(place.file), "gates": GATES}}
    registered(place.folder, "peek", form(others, **fields))


def by_unlocking_without_calibration(place: Place) -> None:
    unlock(place.registration, place.ledger)


def by_reproducing(place: Place) -> None:
    assay = PublishedAssay(name="peek", registration=str(place.file), scores=str(place.file), figures={})
    reproduce(assay, place.ledger)


PEEKS: list[Callable[[Place], None]] = [
    by_path,
    by_path_among_others,
    by_digest,
    by_folder,
    by_pattern,
    by_uri,
    by_a_link,
    by_a_copy,
    by_a_compressed_copy,
    by_a_copy_in_two_gzip_members,
    by_a_compressed_copy_with_a_tail,
    by_a_run_on_the_file,
    by_a_run_on_the_same_claims,
    by_a_run_that_was_only_prepared,
    by_comparing_a_run,
    by_claims,
    by_texts,
    by_calibrating_on_a_table,
    by_calibrating_on_a_table_of_joined_lines,
    by_opening,
    by_opening_another_format,
    by_running,
    by_registering_unsealed,
    by_registering_reformatted,
    by_calibrating_on_it,
    by_unlocking_without_calibration,
    by_reproducing,
]


@pytest.mark.parametrize("peek", PEEKS, ids=lambda peek: peek.__name__)
def test_every_way_to_peek_is_refused(place: Place, peek: Callable[[Place], None]) -> None:
    before = len(read_ledger(place.ledger))
    with pytest.raises(SealedCohort, match="sealed"):
        peek(place)
    assert len(read_ledger(place.ledger)) == before


@pytest.mark.parametrize("peek", PEEKS, ids=lambda peek: peek.__name__)
def test_a_failed_calibration_leaves_it_sealed(place: Place, peek: Callable[[Place], None]) -> None:
    table = record_calibration(place.registration, WRONG, place.ledger)
    assert table.failed == ["supported_precision_min"]
    with pytest.raises(SealedCohort, match="sealed"):
        peek(place)
