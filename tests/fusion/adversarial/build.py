"""Builds the adversarial set of the fusion matcher: ``python -m tests.fusion.adversarial.build``.

The set was written and frozen before any score was taken on it: no case was chosen, worded or dropped for what an
embedding or a formula makes of it. Sentences come from the templates beside this file, names in them are invented.

An instance is a frame (one statement of a domain) with its names and numbers filled in; each makes one plan and
four claims about the same evidence span:

- ``number_swap``: the evidence but for one number, drawn anew from the range of its slot. The slots of a frame take
  turns; of a date one part changes, of a time the hour or the minutes. Not supported.
- ``topical_fabrication``: names and topic of the evidence, and something that it says nothing of. Not supported.
- ``paraphrase``: the same statement in other words and order with the same numbers, some of them in another form
  (a date in ISO and in prose, 12,400 and 12400). Supported.
- ``entity_swap``: the evidence with another person, place or organisation. Not supported, and out of reach of a
  matcher of words and cosines: measured and reported only.

A case is ``{id, class, domain, spans: [{span_id, text, truth_class}], claim, expected}``; the id is
``class/domain/frame/instance/what`` where what says which number (its kind), template or slot was used. The number
kinds: year, int, comma (digit groups), cash and money (amounts), dec, percent, word (spelled cardinals), ordinal
(spelled), nth (in digits), iso, prose and us (dates), time (24 hours), clock (12 hours).

Reviewed by eye before the freeze: every number swap, every template of a fabrication and of a paraphrase with
its names and numbers filled in (two or more instances of each paraphrase, one of each fabrication), two
instances of each entity swap, and a sample of whole plans. Corrected in that review: sentences that were
ungrammatical or implausible, and paraphrases that said more or less than their evidence.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
CASES = HERE / "cases.jsonl"
INSTANCES = 6  # of each frame
OTHERS = (3, 7)  # the least and the most spans of a plan beside the evidence

ORDINALS = ("first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth "
            "fourteenth fifteenth").split()  # fmt: skip
CARDINALS = "one two three four five six seven eight nine ten eleven twelve".split()
MONTHS = ("January February March April May June July August September October November December").split()
NUMBERS = "year int comma cash money dec percent word ordinal nth iso prose us time clock".split()
DATES = ("iso", "prose", "us")

Case = dict[str, Any]


def draw(key: str, n: int) -> int:
    """A number in [0, n) that depends on nothing but ``key``."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8]) % n


def number(kind: str, arguments: Sequence[str], key: str) -> Any:
    """A value of one kind: a date, minutes since midnight, or what is counted (tenths for decimals)."""
    low, high = (float(argument) for argument in arguments[:2])
    if kind in DATES:
        day, month = 1 + draw(key + "day", 28), 1 + draw(key + "month", 12)
        return date(int(low) + draw(key + "year", int(high - low) + 1), month, day)
    if kind in ("time", "clock"):
        return 60 * (int(low) + draw(key + "hour", int(high - low) + 1)) + 5 * draw(key + "minute", 12)
    if kind in ("money", "dec", "percent"):
        return round(10 * low) + draw(key, round(10 * (high - low)) + 1)
    step = int(arguments[2]) if len(arguments) > 2 else 1
    return int(low) + step * draw(key, int(high - low) // step + 1)


def another(kind: str, arguments: Sequence[str], key: str, value: Any) -> Any:
    """Another value than ``value``; of a date or a time only one part differs."""
    for attempt in range(1000):
        fresh = number(kind, arguments, f"{key}{attempt}")
        part = draw(key, 3)
        if kind in DATES:
            fresh = value.replace(**{("day", "month", "year")[part]: (fresh.day, fresh.month, fresh.year)[part]})
        if kind in ("time", "clock"):
            fresh = fresh // 60 * 60 + value % 60 if part else value // 60 * 60 + fresh % 60
        if fresh != value:
            return fresh
    raise ValueError(f"{kind} {arguments} has one value only")


def forms(name: str, kind: str, value: Any) -> dict[str, str]:
    """How a value is written, by the name that templates call it."""
    if kind in DATES:
        month = MONTHS[value.month - 1]
        written = {"iso": f"{value}", "prose": f"{value.day} {month} {value.year}"}
        written["us"] = f"{month} {value.day}, {value.year}"
        return {name: written[kind], **{f"{name}_{form}": text for form, text in written.items()}}
    if kind in ("comma", "cash"):
        return {name: f"{value:,}", f"{name}_plain": str(value)}
    return {name: _written(kind, value)}


def _written(kind: str, value: int) -> str:
    match kind:
        case "time":
            return f"{value // 60:02}:{value % 60:02}"
        case "clock":
            hour = value // 60
            return f"{(hour - 1) % 12 + 1}:{value % 60:02} {'a.m.' if hour < 12 else 'p.m.'}"
        case "money" | "dec" | "percent":
            return f"{value / 10:g}"
        case "word":
            return CARDINALS[value - 1]
        case "ordinal":
            return ORDINALS[value - 1]
        case "nth":
            endings = {1: "st", 2: "nd", 3: "rd"}
            return f"{value}{'th' if value % 100 in (11, 12, 13) else endings.get(value % 10, 'th')}"
    return str(value)


def render(template: str, words: Mapping[str, str]) -> str:
    """The sentence; ``{name^}`` is a name with a capital first letter."""
    capitals = {f"{name}^": text[:1].upper() + text[1:] for name, text in words.items()}
    return template.format_map({**words, **capitals})


def fill(
    pools: Mapping[str, list[str]], frame: Mapping[str, Any], key: str, turn: int
) -> tuple[dict[str, Any], dict[str, str]]:
    """The values of the number slots and the names of the others; slots of one pool get different names."""
    values: dict[str, Any] = {}
    names: dict[str, str] = {}
    for slot, what in frame["slots"].items():
        kind, *arguments = what.split()
        if kind in NUMBERS:
            values[slot] = number(kind, arguments, f"{key}/{turn}/{slot}")
        else:
            names[slot] = next_name(pools[kind], draw(f"{key}/{slot}", len(pools[kind])) + turn, names)
    return values, names


def next_name(pool: Sequence[str], index: int, taken: Mapping[str, str]) -> str:
    """The first name from ``index`` on that is not taken."""
    around = (pool[(index + step) % len(pool)] for step in range(len(pool)))
    return next(name for name in around if name not in taken.values())


def words_of(frame: Mapping[str, Any], values: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, str]:
    """Every text that a template of the frame may name."""
    words = dict(names)
    for slot, value in values.items():
        words.update(forms(slot, frame["slots"][slot].split()[0], value))
    return words


def claims(
    pools: Mapping[str, list[str]], frame: Mapping[str, Any], key: str, turn: int
) -> Iterator[tuple[str, str, str]]:
    """The four claims of an instance as (class, what, claim)."""
    values, names = fill(pools, frame, key, turn)
    words = words_of(frame, values, names)
    slot = list(values)[turn % len(values)]
    kind, *arguments = frame["slots"][slot].split()
    swapped = {**values, slot: another(kind, arguments, f"{key}/{turn}/swap", values[slot])}
    yield "number_swap", kind, render(frame["evidence"], words_of(frame, swapped, names))
    for name in ("topical_fabrication", "paraphrase"):
        templates = frame[name.removeprefix("topical_")]
        yield name, str(turn % len(templates)), render(templates[turn % len(templates)], words)
    entity = frame["entity"]
    pool = pools[frame["slots"][entity]]
    other = next_name(pool, draw(f"{key}/{turn}/entity", len(pool)), names)
    yield "entity_swap", entity, render(frame["evidence"], {**words, entity: other})


def evidence(domain: Mapping[str, Any], pools: Mapping[str, list[str]], key: str, turn: int) -> str:
    """The evidence of one instance; ``key`` is domain/frame."""
    frame = domain["frames"][key.split("/")[1]]
    return render(frame["evidence"], words_of(frame, *fill(pools, frame, key, turn)))


def plan(domain: Mapping[str, Any], pools: Mapping[str, list[str]], key: str, turn: int) -> list[Case]:
    """The spans of an instance: its evidence, and others from the domain's other frames and its fillers."""
    others = list(domain["fillers"])
    for frame in domain["frames"]:
        other = f"{key.split('/')[0]}/{frame}"
        if other != key:
            # Turns beyond the instances of that frame, so that no span is the evidence of another case.
            others += [evidence(domain, pools, other, INSTANCES + turn + extra) for extra in (0, 1)]
    others.sort(key=lambda text: draw(f"{key}/{turn}/{text}", 2**32))
    least, most = OTHERS
    texts = others[: least + draw(f"{key}/{turn}/size", most - least + 1)]
    texts.insert(draw(f"{key}/{turn}/place", len(texts) + 1), evidence(domain, pools, key, turn))
    return [{"span_id": f"S{place}", "text": text, "truth_class": True} for place, text in enumerate(texts, start=1)]


EXPECTED = {
    "number_swap": "unsupported",
    "topical_fabrication": "unsupported",
    "paraphrase": "supported",
    "entity_swap": "unsupported",
}


def cases() -> list[Case]:
    """Every case, by class, then domain, frame and instance."""
    common = yaml.safe_load((HERE / "templates" / "_common.yaml").read_text("utf-8"))
    built: list[Case] = []
    for path in sorted((HERE / "templates").glob("[a-z]*.yaml")):
        domain = yaml.safe_load(path.read_text("utf-8"))
        pools = {**common, **domain["names"]}
        for name, frame in domain["frames"].items():
            key = f"{path.stem}/{name}"
            for turn in range(INSTANCES):
                spans = plan(domain, pools, key, turn)
                for kind, what, claim in claims(pools, frame, key, turn):
                    case = {"id": f"{kind}/{key}/{turn}/{what}", "class": kind, "domain": path.stem, "spans": spans}
                    built.append({**case, "claim": claim, "expected": EXPECTED[kind]})
    return sorted(built, key=lambda case: list(EXPECTED).index(case["class"]))


def text() -> str:
    """The file: a case a line."""
    return "".join(json.dumps(case, ensure_ascii=False) + "\n" for case in cases())


if __name__ == "__main__":
    CASES.write_text(text(), "utf-8")
