"""The GPU check, for a machine with a GPU and little else: torch, transformers, numpy and pyarrow are enough.

    python -m jobs.gpu_check            (or python jobs/gpu_check.py)

It measures the scorers of the library on random weights of the published shapes, with no network and in at most eight
minutes: pairs and tokens a second, model FLOPs utilization, padding, peak memory, beside the bare loop of the same
network and beside sentence-transformers' CrossEncoder.predict where that is installed. It is no Hydra job, as Hydra
need not be there. Exit status: 0 done, 1 probabilities of two sides differ or nothing was measured, 2 a wrong argument,
3 a family failed.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import NoReturn

_ROOT = Path(__file__).resolve().parents[1]
_SECONDS = 480.0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table, perhaps write the report; the exit status."""
    started = time.perf_counter()
    asked = _parsed(arguments)
    # behind the arguments, as torch takes seconds to load
    from verifier.bench.gpu_check import check_gpu, table, write
    from verifier.errors import ConfigurationError

    try:
        report = check_gpu(
            asked.families,
            asked.device,
            asked.shape,
            started + asked.seconds,
            asked.peak_tflops,
            (lambda so_far: write(so_far, asked.out)) if asked.out else (lambda so_far: None),
        )
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return 2
    print(table(report))
    print(f"{time.perf_counter() - started:.0f} s" + (f", report in {asked.out}" if asked.out else ""))
    if report["failed"]:
        return 3
    return 0 if report["families"] and all(figures["agree"] for figures in report["families"].values()) else 1


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    from verifier.bench.gpu_shapes import FAMILIES

    parser = _Parser(prog="gpu_check", description="Speed of the scorers on one GPU, on random weights.")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda", help="default: cuda")
    parser.add_argument("--shape", choices=("tiny", "real"), default="real", help="of the networks (default: real)")
    parser.add_argument(
        "--families", nargs="+", choices=FAMILIES, default=list(FAMILIES), metavar="FAMILY", help=", ".join(FAMILIES)
    )
    parser.add_argument(
        "--seconds",
        type=_positive,
        default=_SECONDS,
        help=f"begin no further family after so many (default: {_SECONDS:.0f})",
    )
    parser.add_argument(
        "--peak-tflops",
        type=_positive,
        help="10^12 operations a second that the device can do at most (default: by its name)",
    )
    parser.add_argument("--out", type=_file, help="write the report here, as JSON")
    return parser.parse_args(arguments)


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return number


def _file(text: str) -> Path:
    path = Path(text)
    if not path.parent.is_dir() or path.is_dir():
        raise argparse.ArgumentTypeError(f"{text} is no file in a folder that exists")
    return path


def _skip_front_doors() -> None:
    """Make modules of the library importable without the ``__init__`` above them: those need what is not here."""
    for name in ("verifier", "verifier.scorers"):
        door = ModuleType(name)
        door.__path__ = [str(_ROOT.joinpath(*name.split(".")))]
        sys.modules[name] = door


if __name__ == "__main__":
    if not __package__:
        sys.path[0] = str(_ROOT)  # run as a file, it is the folder of this one
    _skip_front_doors()
    sys.exit(main())
