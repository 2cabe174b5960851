"""What the GPU check measures and says, on tiny networks on a CPU."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import RobertaConfig, RobertaModel

from jobs.gpu_check import main
from verifier.bench import gpu_check, gpu_family
from verifier.bench.gpu_pairs import synthetic_claims
from verifier.bench.gpu_shapes import FAMILIES, peak_tflops

TINY = ["--device", "cpu", "--shape", "tiny"]


def test_report_and_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "report.json"
    families = ["minilm_l6", "deberta_v3_base", "flan_t5_large"]
    assert main([*TINY, "--families", *families, "--peak-tflops", "0.5", "--out", str(out)]) == 0
    report = json.loads(out.read_text())
    assert report["device"] | {"name": ""} == {"type": "cpu", "name": "", "peak_tflops": 0.5}
    assert list(report["families"]) == families
    assert report["left_out"] == [] and report["failed"] == {}
    for name, figures in report["families"].items():
        _check_family(name, figures)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:4]] == families
    assert "median 100" in lines[4] and lines[-1].endswith(f"report in {out}")


def _check_family(name: str, figures: dict[str, Any]) -> None:
    peers = ["predict_all", "predict_by_claim"] if name != "flan_t5_large" else []
    assert list(figures["sides"]) == ["scorer", "bare_loop", *peers]
    assert list(figures["ratios"]) == list(figures["max_difference"]) == ["bare_loop", *peers]
    assert figures["agree"] and max(figures["max_difference"].values()) <= figures["tolerance"] == 1e-5
    assert figures["spread"] > 20 * figures["tolerance"]  # else equal answers would say nothing
    # the very same batches on both sides
    assert figures["padding_share"]["scorer"] == pytest.approx(figures["padding_share"]["bare_loop"])
    assert 0 <= figures["padding_share"]["scorer"] < 0.1
    assert figures["rounds"] == len(figures["sides"]["scorer"]["seconds"]) == 3
    for side in figures["sides"].values():
        pairs, seconds = np.array(side["pairs"]), np.array(side["seconds"])
        assert side["pairs_per_second"] == pytest.approx(np.median(pairs / seconds))
    scorer = figures["sides"]["scorer"]
    per_pair = scorer["tokens_per_second"] / scorer["pairs_per_second"]
    assert per_pair == pytest.approx(figures["tokens"] / figures["pairs"])
    assert 0 < scorer["model_flops_utilization"] < 1
    assert figures["tokens_of_a_pair"]["max"] < 512


def test_no_family_begins_after_the_time_is_used_up(tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    kept: list[list[str]] = []
    report = gpu_check.check_gpu(
        ["minilm_l6", "flan_t5_large"],
        "cpu",
        "tiny",
        time.perf_counter() + 0.2,
        keep=lambda so_far: kept.append([*so_far["families"], *so_far["left_out"]]),
    )
    assert report["families"]["minilm_l6"]["rounds"] == 1
    assert report["left_out"] == ["flan_t5_large"]
    assert kept == [["minilm_l6"], ["minilm_l6", "flan_t5_large"]]
    assert "left out, as the time was used up: flan_t5_large" in gpu_check.table(report)
    assert main([*TINY, "--seconds", "1e-9", "--out", str(out)]) == 1
    assert json.loads(out.read_text())["left_out"] == list(FAMILIES)


def test_different_probabilities_are_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(gpu_family.TOLERANCE, "float32", -1.0)
    assert main([*TINY, "--families", "minilm_l6"]) == 1
    assert "PROBABILITIES DIFFER: minilm_l6" in capsys.readouterr().out


def test_a_family_that_fails_does_not_end_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    too_long = [[(f"It rained on day {number}. " * 100, "It rained.")] for number in range(2)]
    monkeypatch.setattr(gpu_check, "synthetic_claims", lambda count: too_long)
    assert main([*TINY, "--families", "minilm_l6", "flan_t5_large"]) == 3
    told = capsys.readouterr().out
    assert "FAILED minilm_l6: VerificationError: a pair is too long" in told
    assert "flan_t5_large" in told.splitlines()[1] and "FAILED flan_t5_large" not in told


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--shape", "huge"], "argument --shape: invalid choice: 'huge'"),
        (["--families", "bert"], "argument --families: invalid choice: 'bert'"),
        (["--seconds", "0"], "argument --seconds: 0 is not a number above 0"),
        (["--seconds", "soon"], "argument --seconds: soon is not a number above 0"),
        (["--peak-tflops", "nan"], "argument --peak-tflops: nan is not a number above 0"),
        (["--out", "no/such/folder.json"], "argument --out: no/such/folder.json is no file in a folder that exists"),
        (["--fast"], "unrecognized arguments: --fast"),
    ],
)
def test_a_wrong_argument_is_told_in_one_sentence(
    arguments: list[str], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    told = capsys.readouterr()
    assert stopped.value.code == 2
    assert told.err.startswith(part) and told.err.count("\n") == 1 and told.out == ""


def test_a_missing_gpu_is_told_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main(["--device", "cuda"]) == 2
    told = capsys.readouterr().err
    assert "there is no GPU here" in told and told.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("NVIDIA H200", 989.4),
        ("NVIDIA H100 80GB HBM3", 989.4),
        ("NVIDIA H100 PCIe", 756.0),
        ("NVIDIA H100 NVL", 835.5),
        ("NVIDIA A100-SXM4-80GB", 312.0),
        ("NVIDIA L4", 121.0),
        ("Tesla T4", 65.0),
        ("NVIDIA L40S", None),
        ("x86_64", None),
    ],
)
def test_peaks_by_name(name: str, peak: float | None) -> None:
    assert peak_tflops(name) == peak


def test_operations_are_those_that_torch_counts() -> None:
    config = RobertaConfig(
        vocab_size=50,
        hidden_size=256,
        num_hidden_layers=6,
        num_attention_heads=4,
        intermediate_size=1024,
        attn_implementation="eager",  # torch does not count the fused one on a CPU
    )
    model = RobertaModel(config, add_pooling_layer=False).eval()
    for length in (16, 400):
        with FlopCounterMode(display=False) as counted, torch.inference_mode():
            model(input_ids=torch.ones((1, length), dtype=torch.int64))
        ours = gpu_family._flops(np.array([length]), config)[0]
        assert ours == pytest.approx(counted.get_total_flops(), rel=0.03)


def test_synthetic_lengths() -> None:
    claims = synthetic_claims(600)
    pairs = [pair for claim in claims for pair in claim]
    words = np.array([len(premise.split()) for premise, _ in pairs])
    assert {len(claim) for claim in claims} == {1, 2, 3, 4, 5}
    assert len(set(pairs)) == len(pairs)
    assert words.min() == 12 and words.max() == 240 and 90 < np.median(words) < 110
    assert synthetic_claims(5) == claims[:5]
