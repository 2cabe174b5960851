"""Every word of the specification's lists, one by one: dropping any from the code fails here."""

import pytest

from tests.search.cases import CONTRACTIONS, CORRECTIONS, MODE_CUES, MONTHS, NEGATORS, STOP_WORDS, WEEKDAYS
from verifier.text.features import TextFeatures
from verifier.text.negation import negation_tokens
from verifier.text.speech import Mode

ONE_CUE = [
    (Mode[mode.upper()], cue) for mode, cues in MODE_CUES.items() for cue in cues.split(", ") if cue not in ("?",)
]


def features(text: str) -> TextFeatures:
    return TextFeatures.of([text])[text]


@pytest.mark.parametrize(("mode", "cue"), ONE_CUE)
def test_a_cue_gives_its_mode_alone_and_only_at_word_borders(mode: Mode, cue: str) -> None:
    expected = mode | Mode.UNCERTAINTY | Mode.QUESTION if cue == "whether" else mode
    for text in (cue, f"xx {cue} yy", cue.upper(), f"({cue})", cue.replace(" ", " \n\t ")):
        assert features(text).modes == expected, text
    assert features(f"x{cue}").modes == (mode if cue.startswith(("they", "you")) else 0)
    assert features(f"{cue}_x").modes == (mode if cue in ENDLESS else 0)


ENDLESS = [*("aim", "aiming", "seek", "seekers", "attempt", "attempted", "intend", "intends", "schedule", "scheduling")]
ENDLESS += ["consider", "considered", "explore", "exploration", "evaluate", "evaluation", "recommend", "recommended"]
ENDLESS += ["suggest", "suggestion", "advise", "advisory"]


def test_a_question_mark_anywhere_is_a_question() -> None:
    assert features("so?it is").modes == Mode.QUESTION


@pytest.mark.parametrize("verb", ["work", "works", "worked", "working"])
def test_work_alone_is_no_attempt(verb: str) -> None:
    assert features(f"they {verb} at it").modes == 0


def test_lookalike_letters_are_found_as_case_insensitive_search_finds_them() -> None:
    assert features("they ſhould go").modes == Mode.ADVICE
    assert features("a plannıng round").modes == Mode.PLAN
    assert features("İf so").modes == Mode.CONDITIONAL
    assert features("they asK").modes == Mode.QUESTION


@pytest.mark.parametrize("negator", NEGATORS)
def test_a_negator_makes_its_clause_negated(negator: str) -> None:
    text = f"It rains; they {negator} go! Fine."
    assert features(text).has_negated_clause
    assert features(text).negated_clause_tokens == [negation_tokens(f"they {negator} go")]
    assert features(text.upper()).has_negated_clause
    assert not features(f"x{negator} y").has_negated_clause
    assert not features(f"{negator}x y").has_negated_clause


@pytest.mark.parametrize("contraction", CONTRACTIONS)
def test_a_curly_apostrophe_is_no_negator(contraction: str) -> None:
    assert not features(contraction.replace("'", "’")).has_negated_clause


def test_no_and_nothing_else_about_longer_is_a_negator() -> None:
    assert features("no\n longer").has_negated_clause
    assert not features("no. longer").has_negated_clause
    assert not features("no, the longer one").has_negated_clause
    assert not features("without, neither, nor").has_negated_clause


def test_a_clause_reaches_over_lines_and_commas() -> None:
    (tokens,) = features("Alpha beta,\ngamma not delta: epsilon. Zeta").negated_clause_tokens
    assert tokens == {"alpha", "beta", "gamma", "delta", "epsilon"}


@pytest.mark.parametrize("cue", CORRECTIONS)
def test_a_correction_cue_is_found_at_word_borders(cue: str) -> None:
    assert features(f"so {cue} it").has_correction_cue
    assert features(f"so {cue} it".title()).has_correction_cue
    assert not features(f"so x{cue}x it").has_correction_cue


@pytest.mark.parametrize("word", STOP_WORDS)
def test_a_stop_word_is_no_negation_token(word: str) -> None:
    assert negation_tokens(f"{word} {word.upper()}") == frozenset()


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("policies ties dies", {"policy", "tie", "die"}),  # "ies" becomes "y" when longer than four letters
        ("owners glass bus gas keys", {"owner", "glass", "bus", "gas", "key"}),
        ("api-key node_7 A1 x9y", {"api-key", "node_7", "a1", "x9y"}),
        ("9x régime дом", {"x", "r", "gime"}),
        ("-dash _under", {"dash", "under"}),
    ],
)
def test_negation_tokens_are_normalized(text: str, tokens: set[str]) -> None:
    assert negation_tokens(text) == tokens


@pytest.mark.parametrize(("kind", "names"), [("weekdays", WEEKDAYS), ("months", MONTHS)])
def test_names_are_found_in_any_case_and_in_full(kind: str, names: list[str]) -> None:
    for name in names:
        assert getattr(features(f"on {name.upper()}, then"), kind) == {name.lower()}
        assert getattr(features(f"x{name} {name}s {name[:-1]}"), kind) == set()


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("7 -7 3.14 -0.5 007", {"7", "-7", "3.14", "-0.5", "007"}),
        ("1,000", {"1", "000"}),
        ("5-7", {"5", "7"}),
        ("--7", {"-7"}),
        ("x-7", {"7"}),
        ("x9 9x v2", set()),
        ("3.14abc", {"3"}),
        ("x1.5", {"5"}),
        ("1.2.3", {"1.2", "3"}),
        ("10% +4 2.", {"10", "4", "2"}),
        ("٣", {"٣"}),
    ],
)
def test_numbers_touch_no_word_character(text: str, numbers: set[str]) -> None:
    assert features(text).numbers == numbers
