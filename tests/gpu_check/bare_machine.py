"""Runs a module as ``python -m`` does, on a Python where only some modules can be found: those that argv[1] lists."""

import json
import runpy
import sys
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from typing import Any

_ABSENT = ("ray", "hydra", "mlflow", "polars", "pydantic", "rich", "omegaconf", "sklearn", "sentence_transformers")
_PRESENT = {*sys.stdlib_module_names, "jobs", "verifier", *json.loads(sys.argv[1])}


class _OnlyPresent(PathFinder):
    @classmethod
    def find_spec(cls, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        top = fullname.partition(".")[0]
        standard = top.startswith("_sysconfigdata")  # named after the platform, so no list of modules has it
        return super().find_spec(fullname, path, target) if standard or top in _PRESENT else None


sys.meta_path[sys.meta_path.index(PathFinder)] = _OnlyPresent
found = [name for name in _ABSENT if find_spec(name)]
if found:
    raise SystemExit(f"still there: {found}")
sys.path[0] = sys.argv[2]
module, sys.argv = sys.argv[3], sys.argv[3:]
runpy.run_module(module, run_name="__main__", alter_sys=True)
