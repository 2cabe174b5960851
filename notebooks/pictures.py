"""Where the output of a notebook goes: into a folder, and pictures into the notebook itself where one is running."""

import os
import sys
import tempfile
from functools import cache
from pathlib import Path


def shown(name: str, png: bytes | None) -> Path | None:
    """Keep a picture as ``<name>.png``, show it where a notebook is running, and return its path; None for none.

    The folder is the one that the environment variable NOTEBOOK_OUT names, else a temporary one.
    """
    if png is None:
        print(f"{name}: nothing to draw")
        return None
    path = output_folder() / f"{name}.png"
    path.write_bytes(png)
    if "IPython" in sys.modules:
        from IPython.display import Image, display

        display(Image(png))
    print(f"picture {path}")
    return path


def output_folder() -> Path:
    """The folder that NOTEBOOK_OUT names, created, else one temporary folder for the whole notebook."""
    folder = Path(os.environ.get("NOTEBOOK_OUT") or _temporary())
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@cache
def _temporary() -> str:
    return tempfile.mkdtemp(prefix="notebook-")
