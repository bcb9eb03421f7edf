"""What dotted names mean."""

from __future__ import annotations

import pytest

from .build import project_of, show

PACKAGE = {
    "pkg/__init__.py": (
        "from .sub import public\nfrom .deep.mod import Cls as Renamed\nfrom . import sub as alias\n"
    ),
    "pkg/sub.py": (
        "import torch.distributed as dist\ndef public(): pass\nsync = dist.barrier\nvalue = public()\n"
    ),
    "pkg/deep/__init__.py": "",
    "pkg/deep/mod.py": (
        "from ..sub import *\nfrom ..sub import public as p\n"
        "class Base:\n    def run(self): pass\n    go = run\n"
        "class Cls(Base):\n    class Inner:\n        def f(self): pass\n    tool = p\n"
    ),
}
QUESTIONS = [
    ("pkg", "public", "function pkg.sub.public"),
    ("pkg", "Renamed", "class pkg.deep.mod.Cls"),
    ("pkg", "Renamed.run", "function pkg.deep.mod.Base.run"),
    ("pkg", "Renamed.go", "function pkg.deep.mod.Base.run"),
    ("pkg", "Renamed.Inner.f", "function pkg.deep.mod.Cls.Inner.f"),
    ("pkg", "Renamed.tool", "function pkg.sub.public"),
    ("pkg", "Renamed.missing", "unknown Renamed.missing"),
    ("pkg", "alias.public", "function pkg.sub.public"),
    ("pkg", "deep.mod.p", "function pkg.sub.public"),
    ("pkg", "alias.dist.all_reduce", "external torch.distributed.all_reduce"),
    ("pkg.sub", "sync", "external torch.distributed.barrier"),
    ("pkg.sub", "value", "variable value"),
    ("pkg.sub", "value.attribute", "unknown value.attribute"),
    ("pkg.sub", "print", "external builtins.print"),
    ("pkg.sub", "nobody.knows", "unknown nobody.knows"),
    ("pkg.deep.mod", "public", "function pkg.sub.public"),
    ("pkg.deep.mod", "dist.barrier", "external torch.distributed.barrier"),
    ("pkg.deep.mod", "sync", "external torch.distributed.barrier"),
]


@pytest.mark.parametrize(("module", "dotted", "expected"), QUESTIONS)
def test_a_dotted_name_is_followed(module: str, dotted: str, expected: str) -> None:
    """Imports, re-exports, stars, aliases, classes and built-ins lead to the definition."""
    project = project_of(PACKAGE)
    assert expected == show(project.resolve(project.modules[module], dotted))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("try:\n    import real as x\nexcept ImportError:\n    x = None\n", "external real"),
        ("try:\n    from a import x\nexcept ImportError:\n    from b import x\n", "external a.x"),
        ("x = None\ntry:\n    import real as x\nexcept ImportError:\n    pass\n", "external real"),
        ("if TYPE_CHECKING:\n    from real import x\nelse:\n    x = object\n", "external real.x"),
        ("if flag:\n    def x(): pass\nelse:\n    x = None\n", "function m.x"),
        ("import real as x\nx = x or wrap()\n", "variable x"),
        ("def x(): pass\nx = wrap(x)\n", "variable x"),
        ("if fast:\n    x = a.b\nelse:\n    x = a.c\nimport a\n", "external a.b"),
        ("import a\nx = a.b\nx = a.c\n", "variable x"),
        ("import a\nx, y = a.b, 1\n", "external a.b"),
        ("import a\n(x := a.b)\n", "external a.b"),
        ("with open('f') as x: pass\n", "variable x"),
        ("for x, y in z: pass\n", "variable x"),
        ("match z:\n    case [x]: pass\n", "variable x"),
        ("match z:\n    case 1:\n        import a as x\n", "external a"),
        ("while True:\n    import a as x\nelse:\n    pass\n", "external a"),
        ("def f():\n    import a as x\n", "unknown x"),
        ("class C:\n    import a as x\n", "unknown x"),
        ("from torch.distributed import *\n", "external torch.distributed.x"),
        ("from torch.distributed import *\nfrom torch import *\n", "unknown x"),
        ("from .. import x\n", "unknown x"),
    ],
)
def test_a_module_level_name_means_its_real_binding(text: str, expected: str) -> None:
    """Imports and definitions are preferred to their fallbacks; what is rebound stays a variable."""
    project = project_of({"m.py": text})
    assert expected == show(project.resolve(project.modules["m"], "x"))


def test_relative_imports_between_scripts_mean_siblings() -> None:
    """``from . import helper`` works without ``__init__.py``, as under ``python -m``."""
    project = project_of(
        {"d/m.py": "from . import helper\nfrom .helper import f\n", "d/helper.py": "def f(): pass\n"}
    )
    module = project.modules["m"]
    assert [show(project.resolve(module, name)) for name in ("helper", "f")] == [
        "module helper",
        "function helper.f",
    ]


def test_a_name_above_a_row_is_the_one_that_is_wrapped() -> None:
    """In ``f = wrap(f)`` the inner ``f`` is the function."""
    project = project_of({"m.py": "def f(): pass\nf = wrap(f)\n"})
    assert show(project.resolve_before(project.modules["m"], "f", 2)) == "function m.f"


def test_star_imports_respect_all_and_private_names() -> None:
    """``__all__`` decides where there is one, else a leading underscore."""
    files = {
        "m.py": "from a import *\nfrom b import *\n",
        "a.py": (
            "__all__ = ['_x', 'y']\n__all__ += ['w']\n"
            "def _x(): pass\ndef y(): pass\ndef z(): pass\ndef w(): pass\n"
        ),
        "b.py": "def _p(): pass\ndef q(): pass\n",
    }
    project = project_of(files)
    module = project.modules["m"]
    assert [show(project.resolve(module, name)) for name in ("_x", "y", "z", "w", "_p", "q")] == [
        "function a._x",
        "function a.y",
        "unknown z",
        "function a.w",
        "unknown _p",
        "function b.q",
    ]


def test_a_star_that_cannot_offer_the_name_is_not_parsed() -> None:
    """Asking for one name parses no file without the name's text."""
    project = project_of(
        {"m.py": "from a import *\nfrom b import *\n", "a.py": "def x(): pass\n", "b.py": "y = 1\n"}
    )
    project.resolve(project.modules["m"], "x")
    assert [project.modules[name].is_parsed for name in "ab"] == [True, False]


def test_circular_imports_end() -> None:
    """Names that chase each other through modules are unknown, not an endless search."""
    files = {
        "a.py": "from b import x\nfrom b import *\ny = z\nz = y\n",
        "b.py": "from a import x\nfrom a import *\n",
    }
    project = project_of(files)
    assert show(project.resolve(project.modules["a"], "x")) == "unknown a.x"
    assert show(project.resolve(project.modules["a"], "y")) == "variable z"
    assert show(project.resolve(project.modules["a"], "nowhere")) == "unknown nowhere"


def test_long_chains_are_cut() -> None:
    """A thousand re-exports in a row are no recursion error."""
    files = {f"m{i}.py": f"from m{i + 1} import x\n" for i in range(1000)}
    project = project_of(files)
    assert show(project.resolve(project.modules["m0"], "x")).startswith("unknown")


def test_names_inside_functions() -> None:
    """Nested definitions and imports of the functions around come before the module's; locals are unknown."""
    text = (
        "from other import g\nimport os\n"
        "def outer(param):\n"
        "    from torch import distributed as dist\n"
        "    def inner():\n"
        "        local = 1\n"
        "        return dist\n"
        "    class Helper(Base):\n"
        "        def method(self): pass\n"
        "    return inner\n"
    )
    project = project_of({"m.py": text, "other.py": "def g(): pass\n"})
    outer, inner = project.modules["m"].all_functions[:2]
    asked = ["dist.barrier", "inner", "Helper.method", "g", "param", "local", "os.environ"]
    assert [show(project.resolve_in_function(inner, dotted)) for dotted in asked] == [
        "external torch.distributed.barrier",
        "function m.outer.<locals>.inner",
        "function m.outer.<locals>.Helper.method",
        "function other.g",
        "unknown param",
        "unknown local",
        "external os.environ",
    ]
    assert project.scope_imports(outer) == {"dist": "torch.distributed"}


def test_lazy_packages_reexport_by_their_import_structure() -> None:
    """``_import_structure`` as transformers writes it leads to the submodule."""
    files = {
        "lib/__init__.py": (
            "_import_structure = {'models': [], 'trainer': ['Trainer', 'helper']}\n"
            "try:\n    _import_structure['extra'] = ['Extra']\n"
            "except Exception:\n    _import_structure['trainer'].append('Other')\n"
            "_import_structure['trainer'].extend(['More'])\n"
            "sys.modules[__name__] = _LazyModule(__name__, globals()['__file__'], _import_structure)\n"
        ),
        "lib/trainer.py": "class Trainer: pass\nclass Other: pass\nclass More: pass\n",
        "lib/extra.py": "class Extra: pass\n",
        "lib/models/__init__.py": "",
        "script.py": "from lib import Trainer, Extra, Other, More, models, Nothing\n",
    }
    project = project_of(files)
    asked = ["Trainer", "Extra", "Other", "More", "models", "Nothing"]
    assert [show(project.resolve(project.modules["script"], name)) for name in asked] == [
        "class lib.trainer.Trainer",
        "class lib.extra.Extra",
        "class lib.trainer.Other",
        "class lib.trainer.More",
        "module lib.models",
        "unknown lib.Nothing",
    ]
