import hashlib
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub.constants
import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from tests.tiny_models import FAMILIES, LINES, ODD_LABELS, save_tiny
from verifier.errors import ConfigurationError, PairTooLong, VerificationError
from verifier.protocol import LABELS
from verifier.scorers.base import DetailedScorer, checked_three_label
from verifier.scorers.cross_encoder import CrossEncoderScorer, check_available
from verifier.scorers.loading import length_limit
from verifier.text.windows import split_windows, tokenizer_offsets

LIMIT = 64


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return {family: save_tiny(family, tmp_path_factory.mktemp(family), LIMIT) for family in FAMILIES}


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)


def some_pairs(n: int, seed: int = 1, words: int = 11) -> list[tuple[str, str]]:
    chance = random.Random(seed)
    vocabulary = [*" ".join(LINES).split(), "[SEP]", "</s>", "👩‍👩‍👧", "zz-top", "\n"]
    texts = [" ".join(chance.choices(vocabulary, k=chance.randint(1, words))) for _ in range(2 * n)]
    # Premises and hypotheses repeat, as they do when claims share evidence.
    return [(chance.choice(texts), chance.choice(texts[:n])) for _ in range(n)]


def plain(directory: str, pairs: list[tuple[str, str]], **options: Any) -> np.ndarray:
    """One pair at a time through transformers, columns by the names in the configuration."""
    tokenizer = AutoTokenizer.from_pretrained(directory)
    model = AutoModelForSequenceClassification.from_pretrained(directory).eval()
    names = {name.lower(): column for column, name in model.config.id2label.items()}
    rows = []
    with torch.inference_mode():
        for premise, hypothesis in pairs:
            logits = model(**tokenizer(premise, hypothesis, return_tensors="pt", **options)).logits[0]
            rows.append(torch.softmax(logits, -1)[[names[label] for label in LABELS]].tolist())
    return np.array(rows)


def with_network(scorer: CrossEncoderScorer, logits: Callable[[torch.Tensor], torch.Tensor]) -> CrossEncoderScorer:
    scorer._network = lambda input_ids, **_: SimpleNamespace(logits=logits(input_ids))
    return scorer


def rewrite(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("family", FAMILIES)
def test_equals_a_plain_forward_in_any_batching_and_order(models: dict[str, str], family: str) -> None:
    pairs = [pair for pair in some_pairs(60) if len(AutoTokenizer.from_pretrained(models[family])(*pair)[0]) <= LIMIT]
    assert len(pairs) > 40
    expected = plain(models[family], pairs)
    assert np.ptp(expected, axis=0).min() > 0.05
    for budget in (1, 150, 8192):
        scorer = CrossEncoderScorer(models[family], token_budget=budget)
        assert np.abs(scorer.score(pairs) - expected).max() < 1e-5
        assert np.abs(scorer.score(pairs[::-1]) - expected[::-1]).max() < 1e-5
        shuffled = np.random.default_rng(0).permutation(len(pairs))
        assert np.abs(scorer.score([pairs[index] for index in shuffled]) - expected[shuffled]).max() < 1e-5
    scores = scorer.score_detailed(pairs)
    assert scores.values.dtype == np.float64 and not scores.errors and not scores.truncated.any()
    assert (scores.windows == 1).all() and (scores.window == 0).all()
    checked_three_label(scores.values, len(pairs))


def test_several_chunks_are_put_back_in_order(models: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = some_pairs(40, words=5)
    scorer = CrossEncoderScorer(models["bert"])
    expected = scorer.score(pairs)
    monkeypatch.setattr("verifier.scorers.engine.CHUNK_CHARACTERS", 100)
    assert np.abs(scorer.score(pairs) - expected).max() < 1e-5


def test_is_a_detailed_scorer_and_scores_nothing(models: dict[str, str]) -> None:
    scorer = CrossEncoderScorer(models["bert"])
    assert isinstance(scorer, DetailedScorer)
    assert scorer.model == models["bert"] and scorer.dtype == "float32"
    assert scorer.score([]).shape == (0, 3)


@pytest.mark.parametrize("family", FAMILIES)
def test_pairs_are_joined_as_the_tokenizer_joins_them(models: dict[str, str], family: str) -> None:
    scorer = CrossEncoderScorer(models[family], max_length=None)
    seen: dict[str, torch.Tensor] = {}

    def network(**inputs: torch.Tensor) -> SimpleNamespace:
        seen.update(inputs)
        return SimpleNamespace(logits=torch.zeros(len(inputs["input_ids"]), 3))

    scorer._network = network
    tokenizer = AutoTokenizer.from_pretrained(models[family])
    for pair in [("The museum [SEP] opened.", " It  did </s> not\u00a0"), ("", "a"), ("e\u0301 👩‍👩‍👧", "東京")]:
        scorer.score([pair])
        expected = dict(tokenizer([pair[0]], [pair[1]]))
        assert {name: tensor.tolist() for name, tensor in seen.items()} == expected


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_columns_are_found_by_name(models: dict[str, str], tmp_path: Path, order: tuple[int, int, int]) -> None:
    directory = shutil.copytree(models["bert"], tmp_path / "model")
    names = [ODD_LABELS[index] for index in order]
    rewrite(directory / "config.json", lambda config: config.update(id2label={str(i): n for i, n in enumerate(names)}))
    scorer = with_network(CrossEncoderScorer(str(directory)), lambda ids: torch.tensor([[1.0, 2.0, 4.0]] * len(ids)))
    values = np.exp([1.0, 2.0, 4.0]) / np.exp([1.0, 2.0, 4.0]).sum()
    expected = [values[[name.lower() for name in names].index(label)] for label in LABELS]
    assert scorer.score([("a", "b")])[0] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("names", [["yes", "no", "neutral"], ["entailment", "not_entailment"], ["LABEL_0"] * 3])
def test_other_labels_are_refused(models: dict[str, str], tmp_path: Path, names: list[str]) -> None:
    directory = shutil.copytree(models["bert"], tmp_path / "model")
    rewrite(directory / "config.json", lambda config: config.update(id2label={str(i): n for i, n in enumerate(names)}))
    for refused in (check_available, CrossEncoderScorer):
        with pytest.raises(ConfigurationError, match=r"labels must be .* but they are .*" + names[-1]):
            refused(str(directory))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_long_premise_gets_the_triple_of_its_decisive_window(models: dict[str, str], family: str) -> None:
    scorer = CrossEncoderScorer(models[family], token_budget=400)
    lengths: list[int] = []
    forward = scorer._network.forward
    scorer._network.forward = lambda **inputs: lengths.append(inputs["input_ids"].shape[1]) or forward(**inputs)
    premises = [" ".join(LINES), " ".join(LINES[::-1]) * 3, "東京都" * 90, LINES[0]]
    hypotheses = [LINES[1], "It opened.", "Backups were slow.", "It opened."]
    pairs = list(zip(premises, hypotheses, strict=True))
    scores = scorer.score_detailed(pairs)
    tokenizer = AutoTokenizer.from_pretrained(models[family])
    special = tokenizer.num_special_tokens_to_add(pair=True)
    for index, (premise, hypothesis) in enumerate(pairs):
        room = LIMIT - special - len(tokenizer(hypothesis, add_special_tokens=False)["input_ids"])
        backend = AutoTokenizer.from_pretrained(models[family]).backend_tokenizer
        windows = split_windows(premise, tokenizer_offsets(backend), room)
        expected = plain(models[family], [(window, hypothesis) for window in windows])
        best = int(expected[:, :2].max(axis=1).argmax())
        assert (scores.windows[index], scores.window[index]) == (len(windows), best)
        assert np.abs(scores.values[index] - expected[best]).max() < 1e-5
    assert (scores.windows > 1).tolist() == [True, True, family != "bert" or scores.windows[2] > 1, False]
    assert max(lengths) <= LIMIT and not scores.errors and not scores.truncated.any()


def test_the_first_window_stands_on_ties(models: dict[str, str]) -> None:
    scorer = CrossEncoderScorer(models["bert"])
    scores = with_network(scorer, lambda ids: torch.zeros(len(ids), 3)).score_detailed([(" ".join(LINES) * 4, "no")])
    assert scores.windows[0] > 4 and scores.window[0] == 0


def test_contradiction_can_decide_a_window(models: dict[str, str]) -> None:
    scorer = CrossEncoderScorer(models["roberta"])
    contradiction = [name.lower() for name in ODD_LABELS].index("contradiction")
    entailment = [name.lower() for name in ODD_LABELS].index("entailment")
    digit = scorer._tokenizer("7", add_special_tokens=False)["input_ids"]

    def logits(ids: torch.Tensor) -> torch.Tensor:
        rows = torch.zeros(len(ids), 3)
        rows[:, entailment] = 2.0
        rows[(ids == digit[0]).any(dim=1), contradiction] = 5.0
        return rows

    premise = "\n".join([*["It opened."] * 30, "7", *["It opened."] * 30])
    scores = with_network(scorer, logits).score_detailed([(premise, "no")])
    assert scores.values[0].argmax() == LABELS.index("contradiction")
    assert 0 < scores.window[0] < scores.windows[0] - 1


@pytest.mark.parametrize("family", FAMILIES)
def test_equal_windows_are_asked_once(models: dict[str, str], family: str) -> None:
    scorer = CrossEncoderScorer(models[family])
    premise = (" ".join(["opened"] * 10) + ".\n") * 40
    scores = scorer.score_detailed([(premise, "no")])
    assert scores.windows[0] > 3 and scorer.engine.tokens_scored <= 2 * LIMIT


@pytest.mark.parametrize("family", FAMILIES)
def test_truncate_cuts_the_premise_as_the_tokenizer_does(models: dict[str, str], family: str) -> None:
    pairs = [(" ".join(LINES), LINES[2][:30]), (LINES[0], "It opened.")]
    scores = CrossEncoderScorer(models[family], too_long="truncate").score_detailed(pairs)
    expected = plain(models[family], pairs, truncation="only_first", max_length=LIMIT)
    assert np.abs(scores.values - expected).max() < 1e-5
    assert scores.truncated.tolist() == [True, False] and scores.windows.tolist() == [1, 1]


def test_reject_gives_an_error_and_scores_the_others(models: dict[str, str]) -> None:
    scorer = CrossEncoderScorer(models["roberta"], too_long="reject")
    pairs = [(LINES[0], "It opened."), (" ".join(LINES), "It opened.")]
    scores = scorer.score_detailed(pairs)
    assert list(scores.errors) == [1]
    assert (scores.errors[1].outcome, scores.errors[1].code) == ("rejected", "pair_too_long")
    assert np.isnan(scores.values[1]).all()
    assert np.abs(scores.values[0] - plain(models["roberta"], pairs[:1])[0]).max() < 1e-5
    with pytest.raises(PairTooLong, match="pair 1"):
        scorer.score(pairs)


@pytest.mark.parametrize("too_long", ["window", "truncate", "reject"])
def test_a_hypothesis_without_room_is_rejected(models: dict[str, str], too_long: Any) -> None:
    scorer = CrossEncoderScorer(models["bert"], too_long=too_long)
    scores = scorer.score_detailed([("It opened.", " ".join(LINES)), ("It opened.", "No.")])
    assert list(scores.errors) == [0] and scores.errors[0].code == "pair_too_long"
    assert "hypothesis" in scores.errors[0].message
    assert np.isnan(scores.values[0]).all() and np.isfinite(scores.values[1]).all()


def test_a_character_that_does_not_fit_is_rejected(models: dict[str, str]) -> None:
    tokenizer = AutoTokenizer.from_pretrained(models["roberta"])
    hypothesis = "It opened."
    short = len(tokenizer(hypothesis)["input_ids"]) + 2 + 1
    scores = CrossEncoderScorer(models["roberta"], max_length=short).score_detailed([("👩", hypothesis)])
    assert scores.errors[0].code == "pair_too_long" and "character" in scores.errors[0].message


def test_out_of_memory_halves_the_budget_and_goes_on(models: dict[str, str]) -> None:
    pairs = some_pairs(60, words=8)
    scorer = CrossEncoderScorer(models["bert"], token_budget=2048)
    expected = scorer.score(pairs)
    forward = scorer._network.forward
    sizes: list[int] = []

    def small_device(**inputs: torch.Tensor) -> Any:
        sizes.append(inputs["input_ids"].numel())
        if sizes[-1] > 150:
            raise torch.OutOfMemoryError("out of memory")
        return forward(**inputs)

    scorer._network.forward = small_device
    with pytest.warns(RuntimeWarning, match="token_budget is"):
        assert np.abs(scorer.score(pairs) - expected).max() < 1e-5
    assert 75 <= scorer.engine.token_budget <= 150
    sizes.clear()
    scorer.score(pairs)
    assert max(sizes) <= 150


def test_out_of_memory_with_one_input_is_an_error(models: dict[str, str]) -> None:
    def full(ids: torch.Tensor) -> torch.Tensor:
        raise torch.OutOfMemoryError("out of memory")

    scorer = with_network(CrossEncoderScorer(models["bert"]), full)
    with pytest.warns(RuntimeWarning), pytest.raises(VerificationError, match="too little memory"):
        scorer.score(some_pairs(5, words=4))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_logits_that_are_not_finite_are_an_error(models: dict[str, str], bad: float) -> None:
    scorer = CrossEncoderScorer(models["bert"])
    with torch.no_grad():
        scorer._network.classifier.bias[1] = bad
    with pytest.raises(VerificationError, match="finite"):
        scorer.score([("a", "b")])


def test_the_revision_of_a_directory_is_the_sha256_of_its_weights(models: dict[str, str], tmp_path: Path) -> None:
    weights = (Path(models["bert"]) / "model.safetensors").read_bytes()
    digest = hashlib.sha256(weights).hexdigest()
    assert CrossEncoderScorer(models["bert"]).revision == digest
    assert CrossEncoderScorer(models["bert"], revision=digest).revision == digest
    assert CrossEncoderScorer(save_tiny("bert", tmp_path, seed=7)).revision != digest
    with pytest.raises(ConfigurationError, match="not the pinned"):
        CrossEncoderScorer(str(tmp_path), revision=digest)


def test_sharded_weights_are_digested_by_name(models: dict[str, str], tmp_path: Path) -> None:
    model = AutoModelForSequenceClassification.from_pretrained(models["bert"])
    model.save_pretrained(tmp_path, max_shard_size="20KB")
    AutoTokenizer.from_pretrained(models["bert"]).save_pretrained(tmp_path)
    shards = sorted(tmp_path.glob("*.safetensors"))
    assert len(shards) > 1
    expected = hashlib.sha256(b"".join(shard.read_bytes() for shard in shards)).hexdigest()
    assert CrossEncoderScorer(str(tmp_path)).revision == expected


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("model", ["cross-encoder/not-in-any-cache", "/no/such/directory"])
def test_a_model_that_cannot_be_had_names_the_offline_choices(model: str) -> None:
    for refused in (check_available, CrossEncoderScorer):
        with pytest.raises(ConfigurationError) as caught:
            refused(model)
        message = str(caught.value)
        assert message.startswith(f"the model {model} cannot be loaded (")
        for choice in ("scorer=offline", "scorer=recorded", "a local directory"):
            assert choice in message
        assert "\n" not in message and ". " not in message


@pytest.mark.usefixtures("offline")
def test_an_unpinned_hub_model_warns_and_records_the_commit(
    models: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "models--someone--tiny"
    shutil.copytree(models["bert"], repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.warns(UserWarning, match=f"scorer.revision={commit}"):
        scorer = CrossEncoderScorer("someone/tiny")
    assert scorer.revision == commit
    assert scorer.model == "someone/tiny"
    assert CrossEncoderScorer("someone/tiny", revision=commit).revision == commit
    check_available("someone/tiny", commit)
    with pytest.raises(ConfigurationError, match="cannot be loaded"):
        check_available("someone/tiny", "f" * 40)


def test_a_checkpoint_without_a_classifier_is_refused(models: dict[str, str], tmp_path: Path) -> None:
    model = AutoModelForSequenceClassification.from_pretrained(models["bert"])
    directory = shutil.copytree(models["bert"], tmp_path / "model")
    state = {name: tensor for name, tensor in model.state_dict().items() if not name.startswith("classifier")}
    model.save_pretrained(directory, state_dict=state)
    with pytest.raises(ConfigurationError, match="lacks 2 weights"):
        CrossEncoderScorer(str(directory))


def test_only_safetensors_are_read(models: dict[str, str], tmp_path: Path) -> None:
    directory = shutil.copytree(models["bert"], tmp_path / "model")
    model = AutoModelForSequenceClassification.from_pretrained(directory)
    torch.save(model.state_dict(), directory / "pytorch_model.bin")
    (directory / "model.safetensors").unlink()
    for refused in (check_available, CrossEncoderScorer):
        with pytest.raises(ConfigurationError, match="cannot be loaded"):
            refused(str(directory))


def test_settings_saved_with_a_tokenizer_do_not_cut_or_pad(models: dict[str, str], tmp_path: Path) -> None:
    pairs = [(LINES[0], "It opened."), ("a", "b")]
    directory = shutil.copytree(models["bert"], tmp_path / "model")
    cut = {"direction": "Right", "max_length": 8, "strategy": "LongestFirst", "stride": 0}
    pad = {"strategy": {"Fixed": 50}, "direction": "Right", "pad_to_multiple_of": None}
    pad |= {"pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"}
    rewrite(directory / "tokenizer.json", lambda saved: saved.update(truncation=cut, padding=pad))
    scorer = CrossEncoderScorer(str(directory))
    assert np.abs(scorer.score(pairs) - plain(models["bert"], pairs)).max() < 1e-5
    tokenizer = AutoTokenizer.from_pretrained(models["bert"])
    assert scorer.engine.tokens_scored == sum(len(tokenizer(*pair)["input_ids"]) for pair in pairs)


def test_a_gpu_that_is_not_there(models: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(ConfigurationError, match="allow_cpu_fallback"):
        CrossEncoderScorer(models["bert"], device="cuda")
    with pytest.warns(RuntimeWarning, match="runs on the CPU"):
        scorer = CrossEncoderScorer(models["bert"], device="cuda", allow_cpu_fallback=True)
    assert scorer.dtype == "float32"


@pytest.mark.parametrize(
    "wrong", [{"device": "abacus"}, {"dtype": "int8"}, {"too_long": "split"}, {"token_budget": 0}, {"max_length": 65}]
)
def test_arguments_that_do_not_fit_are_refused(models: dict[str, str], wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=str(next(iter(wrong.values())))):
        CrossEncoderScorer(models["bert"], **wrong)


def test_bfloat16_is_close(models: dict[str, str]) -> None:
    pairs = some_pairs(20, words=5)
    scorer = CrossEncoderScorer(models["roberta"], dtype="bfloat16")
    assert scorer.dtype == "bfloat16" and scorer._network.dtype == torch.bfloat16
    assert np.abs(scorer.score(pairs) - CrossEncoderScorer(models["roberta"]).score(pairs)).max() < 0.1
    checked_three_label(scorer.score(pairs), len(pairs))


@pytest.mark.parametrize(
    ("of_tokenizer", "config", "asked", "expected"),
    [
        (512, {"model_type": "bert", "max_position_embeddings": 512}, None, 512),
        (10**30, {"model_type": "bert", "max_position_embeddings": 256}, None, 256),
        (512, {"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1}, None, 512),
        (10**30, {"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1}, None, 512),
        (128, {"model_type": "bert", "max_position_embeddings": 512}, None, 128),
        (2048, {"model_type": "deberta-v2", "max_position_embeddings": 512, "relative_attention": True,
                "position_biased_input": False}, None, 2048),
        (10**30, {"model_type": "deberta-v2", "max_position_embeddings": 512, "relative_attention": True,
                  "position_biased_input": False}, None, 512),
        (512, {"model_type": "deberta-v2", "max_position_embeddings": 512, "relative_attention": True,
               "position_biased_input": False}, 2048, 2048),
        (512, {"model_type": "bert", "max_position_embeddings": 512}, 100, 100),
    ],
)  # fmt: skip
def test_length_limits(of_tokenizer: int, config: dict[str, Any], asked: int | None, expected: int) -> None:
    limit = length_limit(SimpleNamespace(model_max_length=of_tokenizer), SimpleNamespace(**config), asked)
    assert limit == expected


def test_padding_is_counted_and_small(models: dict[str, str]) -> None:
    pairs = some_pairs(400, words=10)
    scorer = CrossEncoderScorer(models["bert"], token_budget=1024)
    scorer.score(pairs)
    assert scorer.engine.tokens_scored > 4000
    assert scorer.engine.tokens_padded <= 0.05 * (scorer.engine.tokens_scored + scorer.engine.tokens_padded)
    assert scorer.engine.seconds > 0 and scorer.seconds_tokenizing > 0
