"""Loading a model of the `transformers` library from a hub or a directory: safetensors only, no remote code."""

import hashlib
import logging
import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from transformers import AutoTokenizer
from transformers.utils.hub import cached_file

from verifier.errors import ConfigurationError

TooLong = Literal["window", "truncate", "reject"]

# Each retry of a hub that is not there would be a warning; the error says it once.
logging.getLogger("huggingface_hub").setLevel(logging.ERROR)

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
# A tokenizer without a limit of its own reports 1e30.
_SANE_LENGTH = 1_000_000


def parse_device(device: str) -> torch.device:
    """A device by name, there or not; ConfigurationError for a name that means none."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.device(device)
    except RuntimeError as error:
        raise ConfigurationError(f"the device {device!r} is unknown: use auto, cpu or cuda") from error


def resolve_device(device: str, allow_cpu_fallback: bool = False) -> torch.device:
    """``auto`` (a GPU where there is one), ``cpu``, ``cuda``, ``cuda:1`` … as a device.

    A GPU that is not there is a ConfigurationError, or with ``allow_cpu_fallback`` the CPU and a warning.
    """
    wanted = parse_device(device)
    if wanted.type != "cuda" or (wanted.index or 0) < torch.cuda.device_count():
        return wanted
    if not allow_cpu_fallback:
        raise ConfigurationError(
            f"the device {device} is not there: use device=cpu, device=auto, or allow_cpu_fallback=true"
        )
    warnings.warn(f"the device {device} is not there, the model runs on the CPU", RuntimeWarning, stacklevel=2)
    return torch.device("cpu")


def resolve_dtype(dtype: str, device: torch.device) -> str:
    """``auto`` is bfloat16 on a GPU and float32 elsewhere; the name of the arithmetic, or ConfigurationError."""
    if dtype == "auto":
        return "bfloat16" if device.type == "cuda" else "float32"
    if dtype not in DTYPES:
        raise ConfigurationError(f"the dtype {dtype!r} is unknown: use auto, {', '.join(DTYPES)}")
    return dtype


def check_settings(settings: Mapping[str, Any]) -> None:
    """Raise ConfigurationError for a setting that no machine could run with; devices may be elsewhere."""
    device = parse_device(settings.get("device", "auto"))
    resolve_dtype(settings.get("dtype", "auto"), device)
    too_long, budget = settings.get("too_long", "window"), settings.get("token_budget")
    if too_long not in get_args(TooLong):
        raise ConfigurationError(f"too_long is {too_long!r}: use window, truncate or reject")
    if budget is not None and budget < 1:
        raise ConfigurationError(f"token_budget is {budget}: at least 1 token expected")


def is_directory(model: str) -> bool:
    """Whether ``model`` names a directory rather than a model of a hub."""
    return Path(model).is_dir()


def weight_files(directory: str) -> list[Path]:
    """The directory's ``*.safetensors`` files by name; ConfigurationError where there is none."""
    files = sorted(Path(directory).glob("*.safetensors"), key=lambda path: path.name)
    if not files:
        raise cannot_load(directory, "the directory has no *.safetensors file")
    return files


def weights_digest(directory: str) -> str:
    """Hexadecimal sha256 over the bytes of the directory's ``*.safetensors`` files in the order of their names."""
    digest = hashlib.sha256()
    for path in weight_files(directory):
        with path.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def cannot_load(model: str, reason: str) -> ConfigurationError:
    """The error, one sentence, for a model that cannot be had; it names what works without a hub."""
    return ConfigurationError(
        f"the model {model} cannot be loaded ({_first_sentence(reason)}): without it use scorer=offline or "
        "recorded scores (scorer=recorded, scorer=recorded_support), or name a local directory in its place"
    )


def _first_sentence(reason: str) -> str:
    line = next((line.strip() for line in reason.splitlines() if line.strip()), "no reason given")
    return re.split(r"[.!?]\s", line, maxsplit=1)[0].rstrip(".:!? ")


def load(loader: Callable[..., Any], model: str, revision: str | None, **options: Any) -> Any:
    """``loader(model, revision=…, trust_remote_code=False)``; any failure is ``cannot_load``'s error."""
    if model.startswith(("/", "./", "../", "~")) and not is_directory(model):
        raise cannot_load(model, "there is no such directory")
    try:
        if is_directory(model):
            return loader(model, trust_remote_code=False, local_files_only=True, **options)
        return loader(model, revision=revision, trust_remote_code=False, **options)
    except Exception as error:
        # Loaders raise OSError, ValueError, KeyError, ImportError and SafetensorError: none is our user's business.
        raise cannot_load(model, str(error) or type(error).__name__) from error


def load_tokenizer(model: str, revision: str | None) -> Any:
    """A fast tokenizer that neither cuts nor pads on its own, whatever settings it was saved with."""
    tokenizer = load(AutoTokenizer.from_pretrained, model, revision)
    if not tokenizer.is_fast:
        raise cannot_load(model, "it has no fast tokenizer")
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    return tokenizer


def load_weights(
    loader: Callable[..., Any], model: str, revision: str | None, dtype: str, allow_extra: bool = True
) -> Any:
    """A model in evaluation mode, from safetensors; weights that the checkpoint lacks are an error.

    So are weights that the model lacks, unless ``allow_extra``.
    """
    # Weights of another shape are left to the report: the library's own error is about a setting that is not ours.
    options = {"use_safetensors": True, "output_loading_info": True, "ignore_mismatched_sizes": True}
    loaded, report = load(loader, model, revision, dtype=DTYPES[dtype], **options)
    missing = sorted([*report.get("missing_keys", ()), *(name for name, *_ in report.get("mismatched_keys", ()))])
    if missing:
        raise cannot_load(model, f"its checkpoint lacks {len(missing)} weights such as {missing[0]}")
    extra = sorted(map(str, report.get("unexpected_keys", ())))
    if extra and not allow_extra:
        raise cannot_load(model, f"its checkpoint has {len(extra)} weights too many such as {extra[0]}")
    return loaded.eval()


def pinned(model: str, revision: str | None) -> str:
    """What ``model`` at ``revision`` is right now: the commit of a hub's model, a directory's ``weights_digest``.

    Load everything at the commit, so that all files are of one state. A ``revision`` of 64 hexadecimal digits
    given for a directory must be its digest. Raises ConfigurationError.
    """
    if not is_directory(model):
        return Path(load(_configuration_path, model, revision)).parent.name
    digest = weights_digest(model)
    if revision and re.fullmatch(r"[0-9a-f]{64}", revision) and revision != digest:
        raise ConfigurationError(f"the weights in {model} have the sha256 {digest}, not the pinned {revision}")
    return digest


def _configuration_path(model: str, revision: str | None, trust_remote_code: bool) -> str:
    # A hub's file lies in a folder named after its commit, whatever branch or tag was asked for.
    return str(cached_file(model, "config.json", revision=revision))


def warn_unpinned(model: str, revision: str | None, resolved: str, setting: str = "scorer.revision") -> None:
    """Warn, with the line to pin, where a hub's model was asked for without a revision."""
    if revision is None and not is_directory(model):
        message = f"the model {model} is not pinned; to pin what was loaded: {setting}={resolved}"
        warnings.warn(message, UserWarning, stacklevel=3)


def length_limit(tokenizer: Any, config: Any, max_length: int | None) -> int:
    """The most tokens of one input, special tokens included: ``max_length``, or the model's own limit.

    The model's own is the smaller of the tokenizer's limit and the number of positions; a model with
    relative positions has no such number and goes by its tokenizer first. ConfigurationError when
    ``max_length`` is beyond the model's positions, or when neither side knows a limit.
    """
    of_tokenizer = int(tokenizer.model_max_length) if tokenizer.model_max_length < _SANE_LENGTH else None
    positions = _positions(config)
    relative = bool(getattr(config, "relative_attention", False)) and not getattr(config, "position_biased_input", True)
    if max_length is not None:
        if positions is not None and not relative and max_length > positions:
            raise ConfigurationError(f"max_length is {max_length}, but the model has {positions} positions")
        return max_length
    if relative and of_tokenizer is not None:
        return of_tokenizer
    known = [limit for limit in (of_tokenizer, positions) if limit is not None]
    if not known:
        raise ConfigurationError("neither the tokenizer nor the model names a length limit: set scorer.max_length")
    return min(known)


def _positions(config: Any) -> int | None:
    positions = getattr(config, "max_position_embeddings", None)
    if positions is None or positions <= 0:
        return None
    # These families number positions from behind the padding id.
    offset = {"roberta", "xlm-roberta", "camembert", "xlm-roberta-xl", "roberta-prelayernorm", "mpnet"}
    return int(positions) - (int(config.pad_token_id) + 1 if config.model_type in offset else 0)
