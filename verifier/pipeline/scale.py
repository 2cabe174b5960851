"""What a run of any size would take, from a measured rate: actor hours, and what of a run grows with the claims."""

from collections.abc import Sequence
from typing import NamedTuple

from verifier.pipeline.compaction import FILE_ROWS
from verifier.pipeline.verify import blocks_under_way

SIZES = (10**6, 10**8, 10**10)
_ID_BYTES = 38  # of a claim's id on the driver while the corpus is read, at the most, measured with 5 million
_BLOCK_BYTES = 4_096  # of a block's metadata on the driver, measured: 2 to 4 KB
# Where each begins to hurt: memory of a usual node, objects that a listing or a scan still takes in seconds.
_LIMITS = {"ids of claims": 8e9, "metadata of blocks": 4e9, "result files": 1e5, "files under way": 1e5}


class Projection(NamedTuple):
    """A run of ``claims``: hours of one actor (None without a rate), what grows with it, and what hurts first."""

    claims: int
    actor_hours: float | None
    id_gigabytes: float
    metadata_gigabytes: float
    files: float
    files_under_way: float
    bottleneck: str


def projections(
    pairs_per_claim: float, pairs_per_second: float | None, max_rows_lost: int, sizes: Sequence[int]
) -> list[Projection]:
    """A projection for each size.

    Args:
        pairs_per_claim: of the first round, at least.
        pairs_per_second: that one actor scores, as measured.
        max_rows_lost: as in ``checkpoint``; a quarter of it is a block, and a file until the run is done or resumed.
        sizes: claims.

    >>> [one.bottleneck for one in projections(3, 1000, 2000, SIZES)]
    ['none', 'files under way', 'files under way']
    >>> round(projections(3, 1000, 2000, SIZES)[1].actor_hours)
    83
    """
    rows = blocks_under_way(max_rows_lost)[1]
    return [_projection(size, pairs_per_claim, pairs_per_second, rows) for size in sizes]


def _projection(claims: int, pairs_per_claim: float, rate: float | None, block_rows: int) -> Projection:
    blocks, files = max(claims / block_rows, 1.0), max(claims / FILE_ROWS, 1.0)
    uses = {
        "ids of claims": claims * _ID_BYTES,
        "metadata of blocks": blocks * _BLOCK_BYTES,
        "result files": files,
        "files under way": blocks,
    }
    worst = max(uses, key=lambda name: uses[name] / _LIMITS[name])
    hours = claims * pairs_per_claim / rate / 3600 if rate else None
    return Projection(
        claims,
        hours,
        uses["ids of claims"] / 1e9,
        uses["metadata of blocks"] / 1e9,
        files,
        blocks,
        worst if uses[worst] > _LIMITS[worst] else "none",
    )
