"""Generated (evidence, claim) pairs that use every stop word, every negator and every rule of the corroborator."""

import random

STOP_WORDS = (
    "a an the is are was were be been being of to in on at by for with and or but it its this that as from into over"
    " under near"
).split()
NEGATORS = "no not never none nobody nothing nowhere neither nor cannot without lacks lacking fails unable".split()
CONTRACTIONS = ["isn't", "don't", "can't", "Won't", "HASN'T", "isn’t", "n't"]
CONTENT = (
    "drug cures cancer mice river bank opened 1995 trial 3 café naïve İzmir Straße co-op x isn t don 2.5 $5 e.g. ca"
    " notable nothingness Nor-way under_score 東京 u.s.a o'clock"
).split()
MARKS = [". ", "! ", "? ", ".", "?", "\n", "\r\n", ".\n\n", "; ", ", ", ".\t", ".\u00a0", "\u2028", "... ", '." ']
ALL_WORDS = [*STOP_WORDS, *NEGATORS, *CONTRACTIONS, *CONTENT]


def generate(n: int, seed: int) -> list[tuple[str, str]]:
    """``n`` pairs, most of them about the same thing."""
    chance = random.Random(seed)
    return [_pair(chance) for _ in range(n)]


def _pair(chance: random.Random) -> tuple[str, str]:
    claim = _words(chance, chance.randint(0, 9))
    if chance.random() < 0.15:
        return _text(chance, _words(chance, chance.randint(0, 14))), _text(chance, claim)
    evidence = [word for word in claim if chance.random() < chance.choice([0.5, 0.8, 1.0])]
    for _ in range(chance.randint(0, 5)):
        evidence.insert(chance.randint(0, len(evidence)), _word(chance))
    if chance.random() < 0.2:
        chance.shuffle(evidence)
    return _text(chance, evidence), _text(chance, claim)


def _words(chance: random.Random, n: int) -> list[str]:
    return [_word(chance) for _ in range(n)]


def _word(chance: random.Random) -> str:
    groups, weights = [STOP_WORDS, NEGATORS, CONTRACTIONS, CONTENT], [4, 2, 1, 8]
    word = chance.choice(chance.choices(groups, weights)[0])
    return chance.choices([word, word.upper(), word.capitalize()], [8, 1, 1])[0]


def _text(chance: random.Random, words: list[str]) -> str:
    pieces = [word + (chance.choice(MARKS) if chance.random() < 0.2 else " ") for word in words]
    return "".join(pieces)[: None if chance.random() < 0.5 else -1]
