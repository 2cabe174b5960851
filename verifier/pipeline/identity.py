"""What a run directory belongs to: one configuration and one input, whatever could change a result."""

from collections.abc import Mapping
from typing import Any

from verifier.errors import ConfigurationError


def differences(before: Mapping[str, Any], now: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Each leaf that differs between two nested mappings, as ``name was …, now it is …``."""
    found = []
    for name in sorted({*before, *now}):
        old, new = before.get(name), now.get(name)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            found += differences(old, new, f"{prefix}{name}.")
        elif old != new:
            found.append(f"{prefix}{name} was {old}, now it is {new}")
    return found


def refuse_another_run(before: Mapping[str, Any], now: Mapping[str, Any], run_dir: str) -> None:
    """Raise ConfigurationError, naming what differs, where a run directory belongs to another run."""
    found = differences(before, now)
    if found:
        raise ConfigurationError(
            f"{run_dir} belongs to another run: {'; '.join(found)}: go back to that, or use another output.dir"
        )
