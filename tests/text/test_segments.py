import pytest

from verifier.text.features import TextFeatures
from verifier.text.segments import segment_spans


def segments(text: str) -> list[str]:
    return [text[start:end] for start, end in segment_spans(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? 4th", ["One.", "Two!", "Three?", "4th"]),
        ("One. two", ["One. two"]),
        ("One.\ttwo.\nthree", ["One.\ttwo.", "three"]),
        ("He left. \"Why? (Nobody. [{'4", ["He left.", '"Why?', "(Nobody.", "[{'4"]),
        ('He left. "Why?" (Nobody knows.) Yes', ["He left.", '"Why?" (Nobody knows.) Yes']),
        ("a\r\n\r\n b \n\n\n", ["a", "b"]),
        ("a\rb", ["a\rb"]),
        ("Ends.  \r\n Élan. Ünder. 5", ["Ends.", "Élan. Ünder.", "5"]),
        (".\n.\n", [".", "."]),
        ("", []),
        (" \n ", []),
    ],
)
def test_segments(text: str, expected: list[str]) -> None:
    assert segments(text) == expected


def test_segments_without_modes_and_negation_keep_their_numbers() -> None:
    text = "Alpha runs. They plan a move. It is not down. Beta runs."
    features = TextFeatures.of([text])[text]
    assert features.segments_without(~0, negation=True) == [(1, "Alpha runs."), (4, "Beta runs.")]
    assert features.segments_without(0, negation=True) == [
        (1, "Alpha runs."),
        (2, "They plan a move."),
        (4, "Beta runs."),
    ]
    assert [number for number, _ in features.segments_without(~0, negation=False)] == [1, 3, 4]


def test_a_cue_that_reaches_over_a_border_bars_neither_segment() -> None:
    text = "It holds, provided\nthat it holds"
    features = TextFeatures.of([text])[text]
    assert features.modes
    assert len(features.segments_without(~0, negation=True)) == 2
