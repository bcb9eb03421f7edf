"""The house's plan, checked on every file: who imports whom, how long a file is, what an import costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LINT = ROOT / "lint" / "spmdguard_lint"
RUNTIME = ROOT / "spmdguard"
MAX_LINES = 500

# What each room of the linter may import besides itself. ``rules.registry`` is a room of its own: it knows
# the rules by their files' names, and everybody may ask it.
_GROUND = {"model", "facts"}
_READING = _GROUND | {"names", "source", "config", "rules.registry"}
_MEANING = _READING | {"values", "traces"}
LINT_ROOMS = {
    "model": set(),
    "facts": {"model"},
    "source": _GROUND,
    "rules.registry": {"model", "rules"},
    "config": {"model", "rules.registry", "source"},
    "names": {*_GROUND, "source"},
    "values": {*_GROUND},
    "traces": {*_GROUND, "values"},
    "interpreter": _MEANING,
    "analysis": _MEANING | {"interpreter", "rules"},
    "rules": _MEANING | {"interpreter", "analysis"},
    "report": {"model", "source", "rules.registry"},
    "fixes": _MEANING | {"analysis", "deep_stack"},
    "adopt": _MEANING | {"analysis", "deep_stack", "engine", "fixes"},
    "deep_stack": set(),
    "overlaps": {"model"},
    "cache": {"model", "config", "names"},
    "engine": {
        "cache",
        "deep_stack",
        "overlaps",
        "model",
        "config",
        "rules.registry",
        "source",
        "names",
        "analysis",
        "fixes",
    },
    "cli": {"cache", "model", "config", "rules.registry", "source", "engine", "report", "fixes"},
    "": set(),
}
# The runtime, from the ground up; a file may import from lower layers, and from its own where that is said.
RUNTIME_LAYERS: tuple[tuple[str, ...], ...] = (
    ("arguments", "format", "current", "detach", "decorated", "memory", "exitcodes"),
    ("phases",),
    ("errors", "clock"),
    ("group",),
    ("latch", "region", "deferred"),
    ("work", "driving", "meeting"),
    ("features",),
    ("lifecycle",),
    ("failfast",),
    ("watch", "preflight"),
    ("launching", "demo"),
    ("integrations", "testing"),
    ("cli", "__main__", ""),
)
_MAY_IMPORT_EACH_OTHER = {"latch", "region", "deferred", "work", "driving", "meeting", "cli", "__main__", ""}


def imported_modules(tree: ast.AST, module: str, is_package: bool) -> Iterator[str]:
    """The absolute dotted names that the file of ``module`` imports anywhere, also for type checking only."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".")
                kept = parts[: len(parts) - node.level + is_package]
                base = ".".join([*kept, base] if base else kept)
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def module_name(path: Path, source_root: Path) -> str:
    parts = path.relative_to(source_root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def lint_room(module: str) -> str:
    rest = module.removeprefix("spmdguard_lint").removeprefix(".")
    return "rules.registry" if rest.startswith("rules.registry") else rest.split(".")[0]


def lint_violations(module: str, source: str, is_package: bool = False) -> list[str]:
    """What the file imports against the table."""
    room = lint_room(module)
    if room not in LINT_ROOMS:
        return [f"{module}: the room `{room}` is not in the table"]
    found = set()
    for name in imported_modules(ast.parse(source), module, is_package):
        top = name.split(".")[0]
        if top in ("torch", "spmdguard"):
            found.add(f"{module} imports {name}")
        if top != "spmdguard_lint" or name == "spmdguard_lint":
            continue
        other = lint_room(name)
        if name == "spmdguard_lint.rules" or (other == "rules" and name.endswith(".registry")):
            continue  # the package, named on the way to the registry
        shared = name.startswith("spmdguard_lint.rules.support")  # what several rules say alike
        sibling_rules = room == other == "rules" and not is_package and not shared
        if sibling_rules or (other != room and other not in LINT_ROOMS[room]):
            found.add(f"{module} imports {name}")
    return sorted(found)


def runtime_layer(module: str) -> tuple[int, str]:
    rest = module.removeprefix("spmdguard").removeprefix(".").split(".")[0]
    for index, layer in enumerate(RUNTIME_LAYERS):
        if rest in layer:
            return index, rest
    return next(i for i, layer in enumerate(RUNTIME_LAYERS) if "features" in layer), rest


def runtime_violations(module: str, source: str, is_package: bool = False) -> list[str]:
    """What the file imports from its own layer or a higher one, or from the other half."""
    level, room = runtime_layer(module)
    found = set()
    for name in imported_modules(ast.parse(source), module, is_package):
        if name.split(".")[0] == "spmdguard_lint" and module != "spmdguard.cli":
            found.add(f"{module} imports {name}")
        if not name.startswith("spmdguard.") or not is_module(name):
            continue
        other_level, other = runtime_layer(name)
        same = other == room or (other_level == level and {room, other} <= _MAY_IMPORT_EACH_OTHER)
        if not same and other_level >= level:
            found.add(f"{module} imports {name}")
    return sorted(found)


def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def python_files(*folders: Path) -> list[Path]:
    found = [path for folder in folders for path in folder.rglob("*.py") if "corpus" not in path.parts]
    assert found
    return sorted(found)


def test_linter_rooms_import_by_the_table():
    """Every file of the linter imports only what its room may; never torch, the runtime or another rule."""
    violations = []
    for path in python_files(LINT):
        text = path.read_text(encoding="utf-8")
        module = module_name(path, LINT.parent)
        violations += lint_violations(module, text, path.name == "__init__.py")
    assert violations == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("spmdguard_lint.names.project", "import torch"),
        ("spmdguard_lint.names.project", "from spmdguard.cli import main"),
        ("spmdguard_lint.names.project", "from spmdguard_lint.engine import lint"),
        ("spmdguard_lint.names.project", "from ..interpreter import machine"),
        ("spmdguard_lint.facts.fact", "from ..names.project import Project"),
        ("spmdguard_lint.rules.spg101_x", "from spmdguard_lint.rules import spg102_y"),
        ("spmdguard_lint.rules.spg101_x", "from .spg102_y import RULE"),
        ("spmdguard_lint.report.full", "def f():\n    from spmdguard_lint import engine"),
        ("spmdguard_lint.misc.x", ""),
    ],
)
def test_check_of_the_linter_can_fail(module, source):
    """The check finds imports against the table: absolute, relative, inside functions, and unknown rooms."""
    assert len(lint_violations(module, source)) >= 1


def test_check_of_the_linter_lets_pass_what_is_right():
    """The check does not report what the table allows."""
    assert (
        lint_violations("spmdguard_lint.rules.spg101_x", "from spmdguard_lint.rules.registry import rule")
        == []
    )
    assert lint_violations("spmdguard_lint.names.project", "from ..source.reading import SourceFile") == []
    assert lint_violations("spmdguard_lint.names", "from .project import Project", is_package=True) == []


def test_runtime_rooms_import_downwards():
    """Every file of the runtime imports from lower layers; features do not import one another."""
    violations = []
    for path in python_files(RUNTIME):
        text = path.read_text(encoding="utf-8")
        violations += runtime_violations(module_name(path, ROOT), text, path.name == "__init__.py")
    assert violations == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("spmdguard.format", "from spmdguard.errors import SpmdguardError"),
        ("spmdguard.group.guard", "from spmdguard import stop"),
        ("spmdguard.stop", "from spmdguard.classify import rank_local"),
        ("spmdguard.stop", "from spmdguard_lint.model import Finding"),
    ],
)
def test_check_of_the_runtime_can_fail(module, source):
    """The check finds upward imports, imports between features, and imports of the linter."""
    assert len(runtime_violations(module, source)) >= 1


def test_only_the_group_room_imports_torch():
    """torch is imported in the room `group` alone, and in the rooms for torch's own users."""
    allowed = {"group", "testing", "integrations", "preflight", "watch", "launch"}
    found = [
        module
        for path in python_files(RUNTIME)
        for module in [module_name(path, ROOT)]
        if runtime_layer(module)[1] not in allowed
        for name in imported_modules(ast.parse(path.read_text(encoding="utf-8")), module, False)
        if name.split(".")[0] == "torch"
    ]
    assert found == []


def test_files_are_rooms_not_halls():
    """No Python file has more than 500 lines."""
    files = python_files(LINT, RUNTIME, ROOT / "tests")
    lengths = {path: path.read_bytes().count(b"\n") for path in files}
    too_long = {str(path.relative_to(ROOT)): length for path, length in lengths.items() if length > MAX_LINES}
    assert too_long == {}


def test_folders_hand_names_on():
    """The `__init__` of a folder of the linter has imports, `__all__` and a docstring, and nothing else."""
    offending = []
    for path in LINT.rglob("__init__.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            is_all = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
            if not (is_docstring or is_all or isinstance(node, ast.Import | ast.ImportFrom)):
                offending.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert offending == []


def test_every_test_says_what_it_tests():
    """Every test has a docstring that begins with one line naming the behaviour."""
    silent = []
    for path in python_files(ROOT / "tests"):
        if not path.name.startswith("test_"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            if is_function and node.name.startswith("test_") and not (ast.get_docstring(node) or "").strip():
                silent.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}")
    assert silent == []


def loaded_after(statement: str, wanted: Iterable[str], *argv: str, cwd: Path | None = None) -> list[str]:
    """Which top-level modules of ``wanted`` a fresh process has loaded after ``statement``."""
    program = f"import sys\nsys.argv[1:] = {list(argv)!r}\n{statement}\n"
    program += f"print('loaded', *sorted({{m for m in {list(wanted)!r} if m in sys.modules}}))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=cwd, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].split()[1:]


HEAVY = ("torch", "libcst", "numpy", "rich", "click", "pathspec", "spmdguard_lint", "asyncio")


def test_importing_the_runtime_is_cheap():
    """`import spmdguard` loads neither torch nor libcst nor the linter."""
    assert loaded_after("import spmdguard", HEAVY) == []


def test_check_of_cheapness_can_fail():
    """The check sees a module that is loaded."""
    assert loaded_after("import libcst", HEAVY) != []


def test_linting_a_file_is_cheap(tmp_path):
    """Linting one file loads neither torch, libcst, rich, click nor pathspec, and nothing of the runtime."""
    (tmp_path / "train.py").write_text("import torch.distributed as dist\ndist.barrier()\n", encoding="utf-8")
    rooms = [
        f"spmdguard.{path.stem}" for path in RUNTIME.glob("*.py") if path.stem not in ("__init__", "cli")
    ]
    run = "from spmdguard.cli import main\nassert main(['lint', 'train.py']) == 0"
    wanted = [*(name for name in HEAVY if name != "spmdguard_lint"), *rooms]
    assert loaded_after(run, wanted, cwd=tmp_path) == []
