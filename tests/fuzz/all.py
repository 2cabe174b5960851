"""Every target, registered."""

from tests.fuzz import targets_assays, targets_models, targets_readers, targets_reports, targets_text  # noqa: F401
from tests.fuzz.registry import TARGETS

__all__ = ["TARGETS"]
