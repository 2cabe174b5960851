"""The shipped demo corpora: small and written by hand."""

from pathlib import Path
from typing import Literal


def demo_path(name: Literal["claims", "answers", "passages"] = "claims") -> Path:
    """The path of a demo corpus, a JSON object a line.

    ``claims`` are labelled claims of every kind the verifier distinguishes; ``answers`` are generated answers with
    their evidence plans, ``passages`` a corpus that they can be checked against too.
    """
    return Path(__file__).with_name(f"{name}.jsonl")
