"""What the source must not do with anybody's bytes: unpickle, evaluate, load code, start a shell, trust a template."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from omegaconf import OmegaConf

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for folder in ("verifier", "jobs", "conf") for path in (ROOT / folder).rglob("*.py"))
TEMPLATES = sorted((ROOT / "verifier").rglob("*.j2"))
MODULES = {"pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib", "csv", "yaml", "xml", "telnetlib"}
CALLS = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "torch.load", "torch.hub.load"}
CALLS |= {"pl.read_csv", "builtins.eval", "builtins.exec"}
METHODS = {"write_csv", "to_csv", "sink_csv", "write_excel", "to_pickle", "read_pickle", "unsafe_load", "full_load"}
WITHOUT_WEIGHTS = {"AutoConfig", "AutoTokenizer"}
# Reads a directory that the bench itself has written, in a process of its own.
OWN_DIRECTORIES = {"verifier/bench/bare.py"}


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def problems(tree: ast.AST, name: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            yield from (f"imports {one}" for one in names if one.split(".")[0] in MODULES)
        if isinstance(node, ast.Name) and node.id in ("Markup", "Unpickler"):
            yield f"names {node.id}"
        if isinstance(node, ast.Call):
            called = dotted(node.func)
            if called in CALLS or called.rpartition(".")[2] in METHODS:
                yield f"calls {called}"
            yield from _keywords(node)
    yield from _unsafe_weights(tree, name)


def _keywords(call: ast.Call) -> Iterator[str]:
    allowed = {"trust_remote_code": False, "shell": False, "allow_pickle": False, "weights_only": True}
    allowed |= {"use_safetensors": True, "autoescape": True}
    for keyword in call.keywords:
        if keyword.arg in allowed and not (
            isinstance(keyword.value, ast.Constant) and keyword.value.value is allowed[keyword.arg]
        ):
            yield f"passes {keyword.arg}={ast.unparse(keyword.value)}"


def _unsafe_weights(tree: ast.AST, name: str) -> Iterator[str]:
    """References to ``from_pretrained`` of models that are not called with, or handed on with, safetensors only."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Attribute) and node.attr == "from_pretrained") or name in OWN_DIRECTORIES:
            continue
        owner = dotted(node.value)
        around = parents.get(node)
        call = around if isinstance(around, ast.Call) else None
        safe = call is not None and (
            dotted(call.func) == "load_weights" or any(keyword.arg == "use_safetensors" for keyword in call.keywords)
        )
        if call is not None and dotted(call.func) == "partial":
            safe = _handed_to_load_weights(tree, parents.get(call))
        if owner not in WITHOUT_WEIGHTS and not safe:
            yield f"{owner}.from_pretrained without use_safetensors=True"


def _handed_to_load_weights(tree: ast.AST, assigned: ast.AST | None) -> bool:
    names = [dotted(one) for one in assigned.targets] if isinstance(assigned, ast.Assign) else []
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and dotted(node.func) == "load_weights"]
    return bool(names) and any(dotted(argument) in names for call in calls for argument in call.args[:1])


def test_there_is_source() -> None:
    assert len(SOURCES) > 100 and len(TEMPLATES) > 5


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_source(path: Path) -> None:
    assert list(problems(ast.parse(path.read_text(encoding="utf-8")), str(path.relative_to(ROOT)))) == []


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from cloudpickle import loads",
        "import yaml",
        "eval('1')",
        "torch.load('x')",
        "subprocess.run('x', shell=True)",
        "load(x, trust_remote_code=True)",
        "load(x, trust_remote_code=setting)",
        "AutoModel.from_pretrained('x')",
        "AutoModel.from_pretrained('x', use_safetensors=False)",
        "loader = partial(AutoModel.from_pretrained, config=c)\nload(loader, 'x')",
        "frame.write_csv('x')",
        "Environment(autoescape=False)",
        "Markup(text)",
    ],
)
def test_what_would_be_found(line: str) -> None:
    assert list(problems(ast.parse(line), "x.py"))


def test_weights_are_loaded_from_safetensors_alone() -> None:
    tree = ast.parse((ROOT / "verifier/scorers/loading.py").read_text(encoding="utf-8"))
    (function,) = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "load_weights"]
    assert "'use_safetensors': True" in ast.unparse(function)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_escapes_everything(path: Path) -> None:
    """Autoescape is on and nothing turns it off; in an attribute, what comes from outside stands in double quotes."""
    template = path.read_text(encoding="utf-8")
    assert not re.search(r"\|\s*safe\b|autoescape|\bMarkup\b|<script|javascript:|\bon\w+=", template)
    code = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.S)
    bare = code.sub(lambda found: "§" if found[0][1] == "{" else "", template)
    for tag in re.findall(r"<[a-zA-Z][^<>]*>", bare):
        assert "§" not in re.sub(r'"[^"]*"', "", tag), tag


def test_configuration_names_nothing_outside() -> None:
    for path in sorted((ROOT / "conf").rglob("*.yaml")):
        content = OmegaConf.to_container(OmegaConf.load(path), resolve=False)
        for target in _targets(content):
            assert target.startswith(("verifier.", "hydra.", "jobs.")), (path, target)
        assert "trust_remote_code: true" not in path.read_text(encoding="utf-8").lower()


def _targets(content: object) -> Iterator[str]:
    if isinstance(content, dict):
        yield from (str(value) for name, value in content.items() if name == "_target_")
        for value in content.values():
            yield from _targets(value)
    elif isinstance(content, list):
        for value in content:
            yield from _targets(value)
