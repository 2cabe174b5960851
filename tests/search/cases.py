"""Fresh verification cases that use every cue, stop word and value form of the specification."""

import hashlib
import random
import uuid
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import NDArray

CONTRACTIONS = "can't isn't aren't wasn't weren't didn't doesn't don't won't".split()
MODE_CUES = {
    "desire": "want, wants, wanted, would like, wish, wishes, wished, hope, hopes, hoped, need, needs, needed, aim,"
    " aiming, seek, seekers, they'd like, you’d like",
    "attempt": "try, tries, tried, trying, attempt, attempted, work on, works on, worked on, working on, work to,"
    " works to, worked to, working to",
    "plan": "plan, plans, planned, planning, intend, intends, schedule, scheduling, consider, considered, explore,"
    " exploration, evaluate, evaluation",
    "advice": "should, ought, recommend, recommended, suggest, suggestion, advise, advisory",
    "uncertainty": "might, maybe, perhaps, possible, possibly, potentially, uncertain, whether",
    "conditional": "if, unless, provided that, in case",
    "unverified": "unverified, unconfirmed, reportedly, allegedly",
    "question": "ask, asks, asked, asking, question, questions, questioned, questioning, wonder, wonders, wondered,"
    " wondering, whether, ?",
}
NEGATORS = ["not", "never", "no longer", "cannot", *CONTRACTIONS]
CORRECTIONS = ["no", "not", "never", "neither", "nor", "without", "cannot", *CONTRACTIONS]
CORRECTIONS += ["instead", "rather than", "switched from", "replaced", "incorrect", "false"]
STOP_WORDS = (
    "a an and app application are at be by currently did do does for from i in is it longer no not of on pipeline"
    " project service system team that the this to user was we were will with you"
).split()
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
NUMBERS = [
    "7",
    "-7",
    "3.14",
    "-0.5",
    "007",
    "1,000",
    "x9",
    "9x",
    "5-7",
    "3.14abc",
    "1.2.3",
    "v2",
    "٣",
    "10%",
    "+4",
    "2.",
]
NEAR_MISSES = ["wanting", "planner", "hopeful", "needy", "iffy", "might've", "unless-else", "notable", "nevermore"]
NEAR_MISSES += [
    "isnt",
    "don’t",
    "CAN'T",
    "Want",
    "PLANS",
    "ſhould",
    "plannıng",
    "provided  that",
    "in\ncase",
    "no\tlonger",
]
NEAR_MISSES += ["mon", "Mar", "may", "monday's", "_if_", "if-then", "Provided", "works", "would", "like", "reseek"]
NOUNS = [
    "owner",
    "owners",
    "policies",
    "ties",
    "glass",
    "bus",
    "API",
    "api-key",
    "node_7",
    "régime",
    "дом",
    "Zoë",
    "s",
    "is_ok",
]
NOUNS += ["classes", "keys", "ingestion", "reviews", "flies", "dies", "gas", "x", "-dash", "A1"]
ENDINGS = [".", "!", "?", ";", ". ", "! ", "? ", "; ", "\n", "\r\n", " ", ", ", '. "', ". (", ".\t", ".\r", "...  "]

SOURCE_TYPES = [None, "user_stated", "user_demonstrated", "system_inferred", "external_document", "tool_output"]
EPISTEMIC_TYPES = [None, None, None, "observed", "asserted", "inferred"]
EPISTEMIC_TYPES += ["hypothetical", "conditional", "deprecated", "unverified"]
LIFECYCLE_STATES = [None, None, None, None, "tentative", "stable", "contested", "superseded", "deprecated", "archived"]
TIMES = [None, None, "2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123456+02:00", "2026-05-06T07:08:09"]

VOCABULARY = [
    *(cue for cues in MODE_CUES.values() for cue in cues.split(", ")),
    *NEGATORS,
    *CORRECTIONS,
    *STOP_WORDS,
    *WEEKDAYS,
    *MONTHS,
    *NUMBERS,
    *NEAR_MISSES,
]


def triple(premise: str, hypothesis: str) -> tuple[float, float, float]:
    """Sharp pseudo-random probabilities that depend on nothing but the two texts."""
    seed = hashlib.sha256(f"{premise}\0{hypothesis}".encode()).digest()
    draws = np.random.default_rng(list(seed)).gamma(0.3, size=3) + 1e-9
    entailment, contradiction, neutral = draws / draws.sum()
    return float(entailment), float(contradiction), float(neutral)


class PseudoRandomScorer:
    """A three-label scorer free of cost; its answers depend on the pair alone."""

    def __init__(self, model: str, revision: str) -> None:
        self.model = model
        self.revision = revision

    def score(self, pairs: list[tuple[str, str]]) -> NDArray[np.float64]:
        return np.array([triple(*pair) for pair in pairs]).reshape(len(pairs), 3)


def _words(rng: random.Random, special: list[str]) -> str:
    words = special + rng.choices(NOUNS, k=rng.randint(1, 4)) + rng.choices(STOP_WORDS, k=rng.randint(0, 3))
    rng.shuffle(words)
    return " ".join(words)


def _sentence(rng: random.Random, special: list[str]) -> str:
    text = _words(rng, special)
    if rng.random() < 0.5:
        text = text[0].upper() + text[1:]
    return text + rng.choice(ENDINGS)


def _negation_of(rng: random.Random, claim: str) -> str:
    words = claim.rstrip(".!?; ").split()
    words.insert(rng.randint(0, len(words)), rng.choice(NEGATORS))
    if rng.random() < 0.3:
        words.append(rng.choice(NOUNS + STOP_WORDS))
    return " ".join(words) + rng.choice([".", "", "!"])


def generate(count: int, seed: int) -> list[dict[str, Any]]:
    """``count`` cases: policy fields, claim, evidence records, requires_complete_set."""
    rng = random.Random(seed)
    vocabulary = VOCABULARY.copy()
    rng.shuffle(vocabulary)
    stream = cycle(vocabulary)

    def special() -> list[str]:
        return [next(stream) for _ in range(rng.choice([0, 0, 1, 1, 2]))]

    cases = []
    for _ in range(count):
        claim = _sentence(rng, special()).strip() or "x"
        evidence = []
        for number in range(rng.choice([0, 1, 1, 1, 2, 2, 3, 4, 6])):
            sentences = [_sentence(rng, special()) for _ in range(rng.randint(1, 4))]
            if rng.random() < 0.35:
                sentences.insert(rng.randint(0, len(sentences)), _negation_of(rng, claim) + rng.choice(ENDINGS))
            item = {
                "reference": f"m{number}",
                "memory_id": str(uuid.UUID(int=rng.getrandbits(128), version=4)),
                "text": " ".join(sentences) if rng.random() < 0.7 else "".join(sentences),
                "source_type": rng.choice(SOURCE_TYPES),
                "epistemic_type": rng.choice(EPISTEMIC_TYPES),
                "lifecycle_state": rng.choice(LIFECYCLE_STATES),
                "event_time": rng.choice(TIMES),
                "valid_from": rng.choice(TIMES),
            }
            evidence.append({name: value for name, value in item.items() if value is not None})
        cases.append(
            {
                "config": {
                    "entailment_threshold": rng.choice([0.5, 0.65, 0.8, 0.95]),
                    "contradiction_threshold": rng.choice([0.5, 0.65, 0.8, 0.95]),
                    "max_group_size": rng.choice([1, 2, 2, 3]),
                    "group_candidate_limit": rng.choice([2, 3, 8]),
                    "entailment_policy": rng.choice(["speech_act_guarded"] * 4 + ["model_only"]),
                    "refutation_policy": rng.choice(["explicit_corroboration"] * 4 + ["model_only"]),
                },
                "claim": claim,
                "evidence": evidence,
                "requires_complete_set": rng.random() < 0.02,
            }
        )
    return cases
