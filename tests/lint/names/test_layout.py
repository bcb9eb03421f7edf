"""Which names files get, and which file an import means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from .build import project_of, real_project, show


def test_a_module_is_named_from_its_topmost_package() -> None:
    """The dotted name starts where ``__init__.py`` files start."""
    project = project_of({"src/pkg/__init__.py": "", "src/pkg/sub/__init__.py": "", "src/pkg/sub/mod.py": ""})
    assert [m.name for m in project.all_modules] == ["pkg", "pkg.sub", "pkg.sub.mod"]


def test_packages_on_disk_count_although_not_linted(
    tree: Callable[[Mapping[str, str | bytes]], Path],
) -> None:
    """Linting one file of a package gives it the package's name."""
    root = tree({"pkg/__init__.py": "", "pkg/mod.py": "from .other import f\n"})
    project = real_project([root / "pkg" / "mod.py"])
    assert project.all_modules[0].name == "pkg.mod"
    assert show(project.resolve(project.all_modules[0], "f")) == "external pkg.other.f"


def test_scripts_of_the_same_name_live_side_by_side() -> None:
    """Each of two ``train.py`` imports its own sibling."""
    files = {
        "a/train.py": "from helper import f\n",
        "a/helper.py": "def f(): pass\n",
        "b/train.py": "from helper import f\n",
        "b/helper.py": "def f(): pass\n",
    }
    project = project_of(files)
    for letter in "ab":
        module = project.by_filename[f"/nowhere/{letter}/train.py"]
        found = project.resolve(module, "f")
        assert f"/nowhere/{letter}/helper.py" == found.info.module.filename  # type: ignore[union-attr]


def test_a_script_elsewhere_is_not_taken_for_a_library() -> None:
    """``import wandb`` means the library although some other folder holds a ``wandb.py``."""
    project = project_of({"tools/wandb.py": "def init(): pass\n", "train/main.py": "import wandb\n"})
    module = project.by_filename["/nowhere/train/main.py"]
    assert show(project.resolve(module, "wandb.init")) == "external wandb.init"


def test_scripts_above_are_found_by_their_folders() -> None:
    """``import tools.helper`` works from the folder that holds ``tools``, ``__init__.py`` or not."""
    project = project_of({"tools/helper.py": "def f(): pass\n", "main.py": "import tools.helper\n"})
    module = project.by_filename["/nowhere/main.py"]
    assert show(project.resolve(module, "tools.helper.f")) == "function helper.f"


def test_a_package_is_importable_from_outside_its_root() -> None:
    """Tests beside ``src`` import the package in ``src``."""
    project = project_of({"src/pkg/__init__.py": "def f(): pass\n", "tests/test_it.py": "import pkg\n"})
    module = project.by_filename["/nowhere/tests/test_it.py"]
    assert show(project.resolve(module, "pkg.f")) == "function pkg.f"


def test_a_namespace_above_a_package_is_part_of_its_name_when_its_imports_say_so() -> None:
    """``megatron.core`` is the name although ``megatron`` has no ``__init__.py``."""
    files = {
        "top/core/__init__.py": "",
        "top/core/a.py": "from top.core.b import f\n",
        "top/core/b.py": "def f(): pass\n",
    }
    project = project_of(files)
    assert [m.name for m in project.all_modules] == ["top.core", "top.core.a", "top.core.b"]
    assert show(project.resolve(project.modules["top.core.a"], "f")) == "function top.core.b.f"


def test_a_folder_without_init_inside_a_package_is_part_of_the_name() -> None:
    """A package below a bare folder of another package keeps the long name, relative imports included."""
    files = {
        "pkg/__init__.py": "",
        "pkg/util.py": "def f(): pass\n",
        "pkg/bare/inner/__init__.py": "from ...util import f\n",
        "pkg/user.py": "from pkg.bare.inner import f\n",
    }
    project = project_of(files)
    assert "pkg.bare.inner" in project.modules
    assert show(project.resolve(project.modules["pkg.user"], "f")) == "function pkg.util.f"


def test_a_script_inside_a_package_finds_its_sibling() -> None:
    """A file that is run directly has its own directory first on the path, the standard library excepted."""
    files = {
        "pkg/__init__.py": "",
        "pkg/run.py": "import helper, random\nif __name__ == '__main__': helper.f()\n",
        "pkg/helper.py": "def f(): pass\n",
        "pkg/random.py": "def seed(): pass\n",
    }
    project = project_of(files)
    run = project.modules["pkg.run"]
    assert show(project.resolve(run, "helper.f")) == "function pkg.helper.f"
    assert show(project.resolve(run, "random.seed")) == "external random.seed"


def test_a_library_module_does_not_shadow_what_a_package_imports() -> None:
    """``import logging`` in a package with a ``logging.py`` means the standard library."""
    project = project_of({"pkg/__init__.py": "", "pkg/logging.py": "", "pkg/a.py": "import logging\n"})
    assert show(project.resolve(project.modules["pkg.a"], "logging.info")) == "external logging.info"
