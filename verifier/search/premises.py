"""How the texts of an evidence group become one premise (SPEC, "Premises")."""

from collections.abc import Sequence

from verifier.search.guards import Passage


def premise(texts: Sequence[str]) -> str:
    """One text as it is; several one a line, marked ``[E1]``, ``[E2]`` … in order."""
    if len(texts) == 1:
        return texts[0]
    return "\n".join(f"[E{number}] {text}" for number, text in enumerate(texts, start=1))


def localize(group: Sequence[Passage]) -> tuple[str, tuple[tuple[int, ...], ...]]:
    """The premise of the segments that may support the claim, and their numbers passage by passage.

    The premise is empty where nothing is left.
    """
    kept = [passage.supporting_segments() for passage in group]
    texts = ["\n".join(text for _, text in segments) for segments in kept if segments]
    return premise(texts) if texts else "", tuple(tuple(number for number, _ in segments) for segments in kept)
