"""Sealed cohorts: nothing that holds their claims is read or scored before they are unlocked.

A seal is known by the sha256 of the cohort's files and by the identities of its claims, so that a copy under another
name, compressed or written in another format, stays sealed. It is open once an unlock is recorded for it.
"""

import hashlib
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from pyarrow.fs import FileType

from verifier.assays.cohorts.identity import identity_of, identity_of_texts
from verifier.assays.ledger import Entry, of_kind, read_ledger
from verifier.assays.registration import Cohort
from verifier.assays.seals import Seal, closed_seals
from verifier.errors import ConfigurationError
from verifier.pipeline.storage import list_files, open_filesystem, read_text
from verifier.records import Claim
from verifier.results import scan_folder
from verifier.schemas import WORK_SCHEMA

_DIGEST = re.compile("[0-9a-f]{64}")
_CHUNK = 1 << 20
_GZIP = b"\x1f\x8b"
_SHOWN = 60  # characters of a claim in a sentence


class SealedCohort(ConfigurationError):
    """Something was asked for that would look at a sealed cohort."""


def refuse_sealed(paths_or_digests: str | Path | Iterable[str | Path], ledger: str | Path) -> None:
    """Raise SealedCohort where any of these belongs to a closed seal; to be called before labels are read.

    Each is a file, a folder, a pattern or a URI; a run directory, which is known by the input that it was made of; or
    a sha256 in hexadecimal. Compressed files are looked into. Nothing is read where no seal is closed.
    """
    seals = closed_seals(read_ledger(Path(ledger)))
    if not seals:
        return
    items = [paths_or_digests] if isinstance(paths_or_digests, str | Path) else list(paths_or_digests)
    for item in items:
        digests, identities = _digests(str(item))
        for seal in seals:
            if digests & seal.files or identities & seal.identities:
                raise SealedCohort(_sentence(seal, str(item)))


def refuse_sealed_claims(claims: Iterable[Claim], ledger: str | Path) -> None:
    """Raise SealedCohort where any of the claims belongs to a closed seal, whatever file it came from."""
    refuse_identities(claims, read_ledger(Path(ledger)))


def refuse_identities(claims: Iterable[Claim], entries: Sequence[Entry]) -> None:
    """Like ``refuse_sealed_claims``, of a ledger that was read."""
    seals = closed_seals(entries)
    for claim in claims if seals else ():
        _refuse_identity(identity_of(claim), f"the claim {claim.claim_id!r}", seals)


def refuse_sealed_texts(pairs: Iterable[tuple[str, Sequence[str]]], ledger: str | Path) -> None:
    """Raise SealedCohort where any pair of a claim's text and its passages' texts is a claim under a closed seal.

    Pairs are not looked at where no seal is closed.
    """
    seals = closed_seals(read_ledger(Path(ledger)))
    for claim, passages in pairs if seals else ():
        _refuse_identity(identity_of_texts(claim, passages), f"the claim {claim[:_SHOWN]!r}", seals)


def refuse_cohort(cohort: Cohort, entries: Sequence[Entry]) -> None:
    """Raise SealedCohort for a cohort that is all of a sealed file, or that has drawn the same claims as a sealed one.

    Nothing is read. Other claims drawn from a sealed file pass, see ``verifier.assays.opening``.
    """
    for seal in closed_seals(entries):
        same_files = bool(seal.files & set(cohort.digests().values()))
        if same_files and (cohort.selected is None or set(cohort.selected) & seal.selected):
            raise SealedCohort(_sentence(seal, f"the cohort {cohort.name}"))


def sealed_identities(entries: Sequence[Entry]) -> frozenset[str]:
    """The identities of all claims under a closed seal."""
    return frozenset(name for seal in closed_seals(entries) for name in seal.identities)


def observed_identities(entries: Sequence[Entry]) -> dict[str, str]:
    """The identity of every claim that was observed, to the registration of the first assay that did so."""
    observed: dict[str, str] = {}
    for entry in of_kind(entries, "observation"):
        for name in entry.body["identities"]:
            observed.setdefault(name, entry.body["registration"])
    return observed


def _refuse_identity(identity: str, item: str, seals: Sequence[Seal]) -> None:
    for seal in seals:
        if identity in seal.identities:
            raise SealedCohort(_sentence(seal, item))


def _sentence(seal: Seal, item: str) -> str:
    short = seal.registration[:12]
    sealed = f"{item} belongs to the sealed cohort {seal.name}: it is neither read nor scored before"
    if seal.failed:
        return (
            f"{sealed} another registration is unlocked whose calibration has every gate of {short}, which failed, with"
            " no weaker bound and on the same cohort"
        )
    return f"{sealed} the calibration of the registration {short} has passed and its unlock is recorded"


def _digests(item: str) -> tuple[set[str], set[str]]:
    """The file digests and, of a run directory, the claim identities that something stands for."""
    if _DIGEST.fullmatch(item):
        return {item}, set()
    filesystem, inside = open_filesystem(item)
    run_file, work = (f"{inside.rstrip('/')}/{name}" for name in ("run.json", "work"))
    if not all(info.type == FileType.NotFound for info in filesystem.get_file_info([run_file, work])):
        inputs = read_text(filesystem, run_file)
        return (_inputs_of_run(item, inputs) if inputs else set()), set(_identities_of_run(item))
    filesystem, files = list_files(item)
    digests: set[str] = set()
    for name in files:
        with filesystem.open_input_stream(name, compression=None) as stream:
            digests |= _content_digests(stream)
    return digests, set()


def _inputs_of_run(item: str, content: str) -> set[str]:
    try:
        return {file["sha256"] for file in json.loads(content)["input"]["inputs"]}
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(f"{item}/run.json is damaged, so nobody can say what the run was made of") from error


def _identities_of_run(run_dir: str) -> Iterator[str]:
    rows = scan_folder(run_dir, "work", WORK_SCHEMA).select("claim", "evidence").collect()
    for claim, evidence in rows.iter_rows():
        yield identity_of_texts(claim, [item["text"] for item in evidence])


def _content_digests(stream: BinaryIO) -> set[str]:
    """The sha256 of a file's bytes and, where they are gzip, of what they hold."""
    stored, held = hashlib.sha256(), hashlib.sha256()
    chunk = stream.read(_CHUNK)
    unzip = _unzipping() if chunk.startswith(_GZIP) else None
    while chunk:
        stored.update(chunk)
        if unzip is not None:
            held.update(unzip(chunk))
        chunk = stream.read(_CHUNK)
    return {stored.hexdigest()} if unzip is None else {stored.hexdigest(), held.hexdigest()}


def _unzipping() -> Callable[[bytes], bytes]:
    """Takes gzip chunk by chunk and gives what it holds, of all its members; from a damaged place on nothing."""
    member = zlib.decompressobj(wbits=31)

    def unzip(chunk: bytes) -> bytes:
        nonlocal member
        held = []
        with suppress(zlib.error):
            while chunk:
                if member.eof:
                    member = zlib.decompressobj(wbits=31)
                held.append(member.decompress(chunk))
                chunk = member.unused_data
        return b"".join(held)

    return unzip
