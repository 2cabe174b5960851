"""Every local grounding family against a plain forward of `transformers`, one prompt at a time."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from inspect import signature
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import hydra.utils
import numpy as np
import pytest
import torch
from omegaconf import OmegaConf
from safetensors.torch import load_file, save_file
from transformers import (
    AutoConfig,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    T5ForTokenClassification,
)

from tests.tiny_models import LINES, save_tiny, save_tiny_flan_t5, save_tiny_hhem
from verifier.errors import ConfigurationError, PairTooLong, VerificationError
from verifier.protocol import Part
from verifier.scorers.base import DetailedScorer, NLIScorer
from verifier.scorers.factcg import TEMPLATE, FactCGScorer
from verifier.scorers.grounding import GroundingScorer
from verifier.scorers.hhem import HHEMScorer
from verifier.scorers.minicheck_deberta import MiniCheckDebertaScorer
from verifier.scorers.minicheck_flan_t5 import MiniCheckFlanT5Scorer
from verifier.scorers.minicheck_roberta import MiniCheckRobertaScorer
from verifier.scorers.nli import EntailmentScorer
from verifier.text.packing import pack_lines, pack_sentences
from verifier.text.windows import split_windows, tokenizer_offsets

POSITIONS = 512
LIMIT = 200
CLAIMS = ("It opened.", LINES[1], "Backups were slow </s> [SEP] {document}", "東京都は 👩‍👩‍👧")
DOCUMENTS = ("a", *LINES, " ".join(LINES[:2]), "The {claim} {0} museum </s>\n\n[SEP] 👩‍👩‍👧 zz-top ", "  two  spaces ")
LONG = (" ".join(LINES) * 2, "\n".join(LINES[::-1]) * 2, "東京都" * 100)
QUESTION = (
    '{0}\n\nChoose your answer: based on the paragraph above can we conclude that "{1}"?\n\n'
    "OPTIONS:\n- Yes\n- No\nI think the answer is "
)
HHEM = "<pad> Determine if the hypothesis is true given the premise?\n\nPremise: {0}\n\nHypothesis: {1}"


@dataclass(frozen=True)
class Family:
    """A tiny model, the scorer of it, and how to ask it by hand."""

    kind: type[GroundingScorer]
    model: str
    own: dict[str, Any]
    tokenizer: Any
    network: Any
    text: Callable[[str, str], str] | None  # None: a pair
    support: Callable[[Any, Any], torch.Tensor]
    known: dict[Any, float] = field(default_factory=dict)

    def scorer(self, **settings: Any) -> Any:
        return self.kind(self.model, **{"packing": "sentences", "max_length": LIMIT} | self.own | settings)

    def inputs(self, document: str, claim: str, **options: Any) -> Any:
        asked = (document, claim) if self.text is None else (self.text(document, claim),)
        return self.tokenizer(*asked, return_tensors="pt", **options)

    def length(self, document: str, claim: str) -> int:
        return self.inputs(document, claim)["input_ids"].shape[1]

    def plain(self, document: str, claim: str, **options: Any) -> float:
        key = document, claim, *options.items()
        if key not in self.known:
            with torch.inference_mode():
                self.known[key] = float(self.support(self.network, self.inputs(document, claim, **options)))
        return self.known[key]

    def windows(self, document: str, claim: str, limit: int = LIMIT) -> list[str]:
        used = self.length("", claim)
        self.length("", "")  # leaves no truncation of an earlier call in the tokenizer
        offsets = tokenizer_offsets(self.tokenizer.backend_tokenizer)
        return split_windows(document, offsets, limit - used, lambda text: self.length(text, claim) - used)


def two_labels(network: Any, inputs: Any) -> torch.Tensor:
    return torch.softmax(network(**inputs).logits[0], -1)[1]


def first_token(network: Any, inputs: Any) -> torch.Tensor:
    return torch.softmax(network(**inputs).logits[0, 0], -1)[1]


def no_or_yes(network: Any, inputs: Any) -> torch.Tensor:
    logits = network(**inputs, decoder_input_ids=torch.tensor([[0]])).logits[0, 0]
    return torch.softmax(torch.stack([logits[3], logits[209]]), -1)[1]


def entailment(network: Any, inputs: Any) -> torch.Tensor:
    names = {name.lower(): column for column, name in network.config.id2label.items()}
    return torch.softmax(network(**inputs).logits[0], -1)[names["entailment"]]


def minicheck(tokenizer: Any) -> Callable[[str, str], str]:
    return lambda document, claim: document + tokenizer.eos_token + claim


def classifier(kind: type[GroundingScorer], directory: str, question: str | None = None) -> Family:
    tokenizer = AutoTokenizer.from_pretrained(directory)
    text = minicheck(tokenizer) if question is None else question.format
    network = AutoModelForSequenceClassification.from_pretrained(directory).eval()
    return Family(kind, directory, {}, tokenizer, network, text, two_labels)


def nli(directory: str) -> Family:
    network = AutoModelForSequenceClassification.from_pretrained(directory).eval()
    return Family(EntailmentScorer, directory, {}, AutoTokenizer.from_pretrained(directory), network, None, entailment)


def flan(directory: str, serialization: str) -> Family:
    tokenizer, network = AutoTokenizer.from_pretrained(directory), AutoModelForSeq2SeqLM.from_pretrained(directory)
    forms: dict[str, Callable[[str, str], str]] = {
        "minicheck": lambda document, claim: "predict: " + document + tokenizer.eos_token + claim,
        "premise_hypothesis": "premise: {0} hypothesis: {1}".format,
    }
    own = {"serialization": serialization}
    return Family(MiniCheckFlanT5Scorer, directory, own, tokenizer, network.eval(), forms[serialization], no_or_yes)


def hhem(weights: str, base: str) -> Family:
    network = T5ForTokenClassification(AutoConfig.from_pretrained(base, num_labels=2)).eval()
    saved = load_file(Path(weights) / "model.safetensors")
    report = network.load_state_dict({name.removeprefix("t5."): value for name, value in saved.items()}, strict=False)
    assert not report.unexpected_keys and report.missing_keys == ["transformer.encoder.embed_tokens.weight"]
    own = {"tokenizer_model": base}
    return Family(HHEMScorer, weights, own, AutoTokenizer.from_pretrained(base), network, HHEM.format, first_token)


NAMES = (
    "minicheck_roberta", "minicheck_deberta", "minicheck_flan_t5", "flan_t5_premise", "factcg", "hhem", "nli_bert",
    "nli_deberta",
)  # fmt: skip
each_family = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Plain forwards of tiny models: threads would only wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def families(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Family]:
    def tiny(family: str, **options: Any) -> str:
        return save_tiny(family, tmp_path_factory.mktemp(family), POSITIONS, **options)

    two = {"labels": ("unsupported", "supported")}
    flan_t5 = save_tiny_flan_t5(tmp_path_factory.mktemp("flan"))
    deberta = tiny("deberta", **two)
    made = (
        classifier(MiniCheckRobertaScorer, tiny("roberta", **two)),
        classifier(MiniCheckDebertaScorer, deberta),
        flan(flan_t5, "minicheck"),
        flan(flan_t5, "premise_hypothesis"),
        classifier(FactCGScorer, deberta, QUESTION),
        hhem(*save_tiny_hhem(tmp_path_factory.mktemp("hhem"))),
        nli(tiny("bert")),
        nli(tiny("deberta")),
    )
    return dict(zip(NAMES, made, strict=True))


@each_family
def test_equals_a_plain_forward_in_any_batching_and_order(families: dict[str, Family], name: str) -> None:
    family = families[name]
    pairs = [pair for pair in product(DOCUMENTS, CLAIMS) if family.length(*pair) <= LIMIT]
    assert len(pairs) > 30
    expected = np.array([family.plain(*pair) for pair in pairs])
    assert np.ptp(expected) > 0.05
    for budget in (1, 64 * LIMIT):
        scorer = family.scorer(token_budget=budget)
        for order in (range(len(pairs)), np.random.default_rng(0).permutation(len(pairs))):
            values = scorer.score_pairs([pairs[index] for index in order])
            assert np.abs(values - expected[order]).max() < 1e-5
    scores = scorer.score_detailed(pairs)
    assert (scores.windows == 1).all() and not scores.window.any() and not scores.truncated.any()
    assert not scores.errors and not scores.parts


def test_is_a_grounding_scorer_and_scores_nothing(families: dict[str, Family]) -> None:
    scorer = families["minicheck_roberta"].scorer()
    assert isinstance(scorer, DetailedScorer) and isinstance(scorer, NLIScorer)
    assert (scorer.model, scorer.dtype, len(scorer.revision)) == (families["minicheck_roberta"].model, "float32", 64)
    assert scorer.score_pairs([]) == []


@each_family
def test_blank_texts_score_nothing_without_a_model_call(families: dict[str, Family], name: str) -> None:
    scorer = families[name].scorer()
    assert scorer.score_pairs([("", "a"), ("a", ""), (" \n", "a"), ("a", "\u00a0"), ("", "")]) == [0.0] * 5
    assert scorer.engine.tokens_scored == 0
    values = scorer.score_pairs([(" ", "a"), (LINES[0], "It opened."), ("a", " ")])
    assert values == pytest.approx([0, families[name].plain(LINES[0], "It opened."), 0], abs=1e-5)


@each_family
@pytest.mark.parametrize("aggregation", ["max", "min", "mean"])
def test_windows_are_put_together_as_asked(families: dict[str, Family], name: str, aggregation: str) -> None:
    family = families[name]
    pairs = [*product(LONG, CLAIMS[:2]), (LINES[0], CLAIMS[0])]
    scores = family.scorer(aggregation=aggregation, token_budget=2048).score_detailed(pairs)
    for index, (document, claim) in enumerate(pairs):
        windows = family.windows(document, claim)
        assert max(family.length(window, claim) for window in windows) <= LIMIT
        assert "".join("".join(windows).split()) == "".join(document.split())
        each = [family.plain(window, claim) for window in windows]
        value = {"max": max, "min": min, "mean": fmean}[aggregation](each)
        assert (scores.windows[index], scores.values[index]) == (len(windows), pytest.approx(value, abs=1e-5))
        if len(windows) == 1:
            assert index not in scores.parts
            continue
        parts = scores.parts[index]
        assert [(part.member, part.window, part.windows) for part in parts] == [
            (None, number, len(windows)) for number in range(len(windows))
        ]
        supports = [part.support for part in parts]
        assert supports == pytest.approx(each, abs=1e-5)
        decided = 0 if aggregation == "mean" else supports.index({"max": max, "min": min}[aggregation](supports))
        assert scores.window[index] == decided
    assert scores.windows.max() > 2 and scores.windows[-1] == 1 and not scores.truncated.any() and not scores.errors


@each_family
def test_equal_prompts_are_asked_once_and_tie(families: dict[str, Family], name: str) -> None:
    family = families[name]
    scorer = family.scorer()
    document = "museum " * 400
    scores = scorer.score_detailed([(document, "It opened."), (LINES[0], "No."), (document, "It opened.")])
    windows = family.windows(document, "It opened.")
    asked = {*((window, "It opened.") for window in windows), (LINES[0], "No.")}
    assert scorer.engine.tokens_scored == sum(family.length(*pair) for pair in asked)
    assert len(asked) <= len(windows) and scores.parts[0] == scores.parts[2]
    supports = [part.support for part in scores.parts[0]]
    assert supports[0] == supports[1] and isinstance(scores.parts[0][0], Part)
    assert scores.window.tolist() == [supports.index(max(supports)), 0, supports.index(max(supports))]


@each_family
def test_reject_gives_an_error_and_scores_the_others(families: dict[str, Family], name: str) -> None:
    family = families[name]
    scorer = family.scorer(too_long="reject")
    pairs = [(LONG[0], "It opened."), (LINES[0], "It opened.")]
    scores = scorer.score_detailed(pairs)
    assert list(scores.errors) == [0]
    assert (scores.errors[0].outcome, scores.errors[0].code) == ("rejected", "pair_too_long")
    assert np.isnan(scores.values[0]) and scores.values[1] == pytest.approx(family.plain(*pairs[1]), abs=1e-5)
    with pytest.raises(PairTooLong, match="pair 0"):
        scorer.score_pairs(pairs)


@each_family
@pytest.mark.parametrize("too_long", ["window", "truncate", "reject"])
@pytest.mark.parametrize("packing", ["sentences", "hhem"])
def test_a_claim_without_room_is_rejected(families: dict[str, Family], name: str, too_long: str, packing: str) -> None:
    scores = families[name].scorer(too_long=too_long, packing=packing).score_detailed([("a", LONG[0]), ("a", "No.")])
    assert list(scores.errors) == [0] and scores.errors[0].code == "pair_too_long"
    assert np.isfinite(scores.values).tolist() == [False, True]


@each_family
def test_truncate_cuts_as_the_tokenizer_does_and_is_counted(families: dict[str, Family], name: str) -> None:
    family = families[name]
    pairs = [(LONG[0], CLAIMS[1]), (LINES[0], "It opened."), (LONG[0], CLAIMS[1])]
    scorer = family.scorer(too_long="truncate")
    expected = [family.plain(*pair, truncation="only_first", max_length=LIMIT) for pair in pairs]
    for _ in range(2):
        scores = scorer.score_detailed(pairs)
        assert np.abs(scores.values - expected).max() < 1e-5
        assert scores.truncated.tolist() == [True, False, True] and scores.windows.tolist() == [1, 1, 1]


@each_family
def test_weights_that_are_not_finite_leave_pairs_unscored(families: dict[str, Family], name: str) -> None:
    scorer = families[name].scorer()
    with torch.no_grad():
        next(scorer._network.parameters()).fill_(torch.nan)
    pairs = [(LINES[0], "It opened."), (" ", "a"), (LONG[0], "It opened.")]
    scores = scorer.score_detailed(pairs)
    assert {index: error.outcome for index, error in scores.errors.items()} == {0: "unscored", 2: "unscored"}
    assert np.isnan(scores.values).tolist() == [True, False, True] and not scores.parts
    with pytest.raises(VerificationError, match="pair 0"):
        scorer.score_pairs(pairs)


@each_family
def test_out_of_memory_halves_the_budget_and_goes_on(families: dict[str, Family], name: str) -> None:
    family = families[name]
    scorer = family.scorer(token_budget=4096)
    pairs = list(product(DOCUMENTS[:8], CLAIMS[:2]))
    expected = [family.plain(*pair) for pair in pairs]
    forward, most = scorer._network.forward, max(family.length(*pair) for pair in pairs)

    def small_device(**inputs: torch.Tensor) -> Any:
        if inputs["input_ids"].numel() > 2 * most:
            raise torch.OutOfMemoryError("out of memory")
        return forward(**inputs)

    scorer._network.forward = small_device
    with pytest.warns(RuntimeWarning, match="token_budget is"):
        assert np.abs(np.array(scorer.score_pairs(pairs)) - expected).max() < 1e-5
    assert most / 2 <= scorer.engine.token_budget <= 2 * most


def test_the_number_of_cpu_workers_changes_nothing(
    families: dict[str, Family], monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = list(product([*DOCUMENTS, *LONG], CLAIMS))
    for name in ("minicheck_deberta", "minicheck_flan_t5"):
        answers = []
        for workers in (1, 4):
            monkeypatch.setattr("verifier.scorers.engine._CPU_THREADS", workers)
            scorer = families[name].scorer(token_budget=300)
            assert scorer.engine._workers == workers
            answers.append(scorer.score_detailed(pairs))
        one, four = answers
        assert np.array_equal(one.values, four.values) and one.parts == four.parts
        assert np.array_equal(one.window, four.window) and one.windows.max() > 1


def test_several_chunks_are_put_back_in_order(families: dict[str, Family], monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = list(product([*DOCUMENTS, *LONG], CLAIMS))
    scorer = families["nli_bert"].scorer()
    expected = scorer.score_detailed(pairs)
    monkeypatch.setattr("verifier.scorers.engine.CHUNK_CHARACTERS", 300)
    scores = scorer.score_detailed(pairs)
    assert np.abs(scores.values - expected.values).max() < 1e-5
    assert np.array_equal(scores.windows, expected.windows)


SENTENCE = "The museum opened in 1995 and it drew 20,000 visitors in the first year of the town. "
PUBLISHED = {
    "minicheck_roberta": 400, "minicheck_deberta": 400, "minicheck_flan_t5": 500, "factcg": 550, "hhem": 512
}  # fmt: skip


def greedy_words(family: Family, document: str, claim: str, limit: int) -> list[str]:
    windows = [""]
    for word in document.split():
        longer = f"{windows[-1]} {word}".strip()
        if family.length(longer, claim) > limit:
            windows.append(word)
        else:
            windows[-1] = longer
    return windows


def published_chunks(name: str, family: Family, document: str, claim: str) -> list[str]:
    if name == "hhem":
        return greedy_words(family, document, claim, 512)
    if name == "factcg":
        return pack_sentences(document, 550)
    tokens = {"words": lambda text: len(text.split()), "tokens": lambda text: len(family.tokenizer.tokenize(text))}
    return pack_lines(document, PUBLISHED[name], tokens["words" if name == "minicheck_flan_t5" else "tokens"])


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_family_packs_by_its_published_rule(families: dict[str, Family], name: str) -> None:
    family = families[name]
    document, claim = SENTENCE * 30 + "\n\n" + SENTENCE * 9 + "  Yes. ", "It opened."
    own = {"packing": "hhem"} if name == "hhem" else {"max_length": 4096} if name == "minicheck_flan_t5" else {}
    scores = family.kind(family.model, **family.own, **own).score_detailed([(document, claim)])
    chunks = published_chunks(name, family, document, claim)
    assert 1 < len(chunks) == scores.windows[0]
    each = [family.plain(chunk, claim) for chunk in chunks]
    assert [part.support for part in scores.parts[0]] == pytest.approx(each, abs=1e-5)
    assert scores.values[0] == pytest.approx(max(each), abs=1e-5)


def test_lengths_are_the_published_ones(families: dict[str, Family]) -> None:
    two_thousand = dict.fromkeys(("minicheck_deberta", "minicheck_flan_t5", "factcg"), 2048)
    for name, length in {"minicheck_roberta": 512, **two_thousand, "hhem": 512}.items():
        family = families[name]
        assert family.kind(family.model, **family.own)._limit == length
    assert EntailmentScorer(families["nli_bert"].model)._limit == POSITIONS


@pytest.mark.parametrize("name", ["minicheck_roberta", "factcg", "minicheck_flan_t5"])
def test_a_chunk_that_does_not_fit_is_cut_further(families: dict[str, Family], name: str) -> None:
    family, claim = families[name], "It opened."
    document = "word " * 300 + ". Yes."
    scores = family.kind(family.model, **family.own, max_length=LIMIT).score_detailed([(document, claim)])
    chunks = published_chunks(name, family, document, claim)
    each = [family.plain(window, claim) for chunk in chunks for window in family.windows(chunk, claim)]
    assert scores.windows[0] == len(each) > len(chunks)
    assert [part.support for part in scores.parts[0]] == pytest.approx(each, abs=1e-5)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "nli_bert"])  # to BERT it is one unknown token
def test_a_word_without_a_gap_is_cut_under_the_word_rule(families: dict[str, Family], name: str) -> None:
    family = families[name]
    scores = family.scorer(packing="hhem").score_detailed([("visitors" * 200, "It opened.")])
    assert scores.windows[0] > 1 and not scores.errors and len(scores.parts[0]) == scores.windows[0]


def test_braces_in_documents_stay(families: dict[str, Family]) -> None:
    prompt = families["factcg"].scorer().prompt("a {claim} {document} {} {0}", "{document} {x")
    assert prompt == QUESTION.format("a {claim} {document} {} {0}", "{document} {x")
    assert TEMPLATE.count("{document}") == TEMPLATE.count("{claim}") == 1


def test_the_template_is_a_setting(families: dict[str, Family]) -> None:
    family = families["factcg"]
    scorer = family.scorer(template="{claim} <- {document} {braces}")
    assert scorer.prompt("d", "c") == "c <- d {braces}"
    for wrong in ("{document}", "{claim} {claim} {document}", ""):
        for refused in (family.kind, family.kind.identify):
            with pytest.raises(ConfigurationError, match="template must hold"):
                refused(family.model, template=wrong)


@each_family
def test_identity_needs_no_weights(families: dict[str, Family], name: str, tmp_path: Path) -> None:
    family = families[name]
    directory = shutil.copytree(family.model, tmp_path / "model")
    (directory / "model.safetensors").write_bytes(b"no weights at all")
    settings = {"max_length": LIMIT} | family.own
    identity = family.kind.identify(str(directory), **settings)
    assert identity["model"] == str(directory) and len(identity["revision"]) == 64
    with pytest.raises(ConfigurationError, match="cannot be loaded"):
        family.kind(str(directory), **settings)
    scorer = family.scorer()
    assert family.kind.identify(family.model, **settings) == {field: getattr(scorer, field) for field in identity}


@each_family
@pytest.mark.parametrize(
    "wrong",
    [{"device": "abacus"}, {"dtype": "int8"}, {"too_long": "split"}, {"token_budget": 0}, {"packing": "lines"},
     {"aggregation": "median"}],
)  # fmt: skip
def test_settings_that_mean_nothing_are_refused(families: dict[str, Family], name: str, wrong: dict[str, Any]) -> None:
    family = families[name]
    for refused in (family.kind, family.kind.identify):
        with pytest.raises(ConfigurationError, match=str(next(iter(wrong.values())))):
            refused(family.model, **family.own | {"max_length": LIMIT} | wrong)


def refused_by(kind: type[GroundingScorer], match: str, *models: str, **settings: Any) -> None:
    for refused in (kind, kind.identify):
        with pytest.raises(ConfigurationError, match=match):
            refused(*models, **settings)


def test_models_of_another_kind_are_refused(families: dict[str, Family]) -> None:
    three, two = families["nli_bert"].model, families["minicheck_roberta"].model
    for kind in (MiniCheckRobertaScorer, MiniCheckDebertaScorer, FactCGScorer):
        refused_by(kind, "has 3 labels, expected 2", three)
    refused_by(EntailmentScorer, "labels must be", two)
    refused_by(MiniCheckFlanT5Scorer, "no sequence-to-sequence", two)
    flan_t5 = families["minicheck_flan_t5"].model
    refused_by(MiniCheckFlanT5Scorer, "serialization is 'xml'", flan_t5, serialization="xml")
    refused_by(HHEMScorer, "is no T5 model, but bert", families["hhem"].model, tokenizer_model=three)
    refused_by(MiniCheckRobertaScorer, "max_length is 513", two, max_length=513)
    refused_by(HHEMScorer, "no such directory", "/no/such/directory", **families["hhem"].own)


def test_a_tokenizer_without_an_end_of_text_token_is_refused(tmp_path: Path) -> None:
    directory = save_tiny("bert", tmp_path, labels=("no", "yes"))
    refused_by(MiniCheckRobertaScorer, "has no end-of-text token", directory, max_length=64)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda state: state.pop("t5.classifier.bias"), "lacks 1 weights such as classifier.bias"),
        (lambda state: state.update(odd=torch.zeros(1)), "1 weights too many such as odd"),
        (
            lambda state: state.update({"t5.classifier.weight": torch.zeros(3, 32)}),
            "lacks 1 weights such as classifier.weight",
        ),
    ],
    ids=["missing", "extra", "three labels"],
)
def test_hhem_weights_must_be_exactly_those_of_the_network(
    families: dict[str, Family], tmp_path: Path, change: Callable[[Any], Any], match: str
) -> None:
    family = families["hhem"]
    directory = shutil.copytree(family.model, tmp_path / "model")
    state = load_file(directory / "model.safetensors")
    change(state)
    save_file(state, directory / "model.safetensors", {"format": "pt"})
    with pytest.raises(ConfigurationError, match=match):
        HHEMScorer(str(directory), **family.own)


def test_hhem_records_where_its_tokenizer_comes_from(families: dict[str, Family], tmp_path: Path) -> None:
    family = families["hhem"]
    base = shutil.copytree(family.own["tokenizer_model"], tmp_path / "base")
    identity = HHEMScorer.identify(family.model, tokenizer_model=str(base))
    assert identity["tokenizer_model"] == str(base)
    with (base / "tokenizer_config.json").open("a") as file:
        file.write(" ")
    assert HHEMScorer.identify(family.model, tokenizer_model=str(base)) != identity


@pytest.mark.parametrize(
    "name", ["minicheck_roberta", "minicheck_deberta", "minicheck_flan_t5", "factcg", "hhem", "nli"]
)
def test_the_menu_has_every_setting_of_a_family_and_its_defaults(name: str) -> None:
    conf = Path(__file__).parents[2] / "conf" / "scorer" / f"{name}.yaml"
    factory = hydra.utils.instantiate(OmegaConf.load(conf))
    parameters = signature(factory.func).parameters
    assert list(factory.keywords) == list(parameters)
    for field_name, value in factory.keywords.items():
        assert field_name in ("model", "revision") or value == parameters[field_name].default


def test_the_entailment_of_a_window_decides(families: dict[str, Family]) -> None:
    family = families["nli_bert"]
    scores = family.scorer().score_detailed([(LONG[0], "It opened.")])
    each = [family.plain(window, "It opened.") for window in family.windows(LONG[0], "It opened.")]
    assert scores.window[0] == int(np.argmax(each)) and scores.values[0] == pytest.approx(max(each), abs=1e-5)
