"""The shipped demo corpus: small, hand-written, labelled claims of every kind the verifier distinguishes."""

from pathlib import Path


def demo_path() -> Path:
    """The path of the demo corpus, one claim as a JSON object a line."""
    return Path(__file__).with_name("claims.jsonl")
