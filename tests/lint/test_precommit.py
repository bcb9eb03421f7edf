"""The pre-commit hooks, run by the real pre-commit from a git repository of this checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = [pytest.mark.processes, pytest.mark.timeout(240)]

PRE_COMMIT = (sys.executable, "-m", "pre_commit")
ROOT = Path(__file__).resolve().parents[2]
CONFIG = """\
repos:
  - repo: {repo}
    rev: {rev}
    hooks:
      - id: spmdguard-lint
      - id: spmdguard-lint-fix
        stages: [manual]
"""
SET = '{"a", "b"}'
HAZARD = """\
import torch.distributed as dist

TABLE = {}


def main():
    dist.init_process_group("gloo")
    for name in {"a", "b"}:
        dist.broadcast(TABLE[name], src=0)
    if dist.get_rank() == 0:
        dist.barrier()
    dist.destroy_process_group()


main()
"""


def run(*command: str, cwd: Path, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def git(*arguments: str, cwd: Path) -> str:
    identity = ("-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false")
    done = run("git", *identity, *arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def repository_of_this_checkout(folder: Path) -> str:
    """Commit the files as they are now, changes included, to a repository in ``folder``; give the commit."""
    listed = git("ls-files", "--cached", "--others", "--exclude-standard", "-z", cwd=ROOT)
    for name in filter(None, listed.split("\0")):
        source = ROOT / name
        if not source.is_file() or name.startswith("tests/"):
            continue
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
    git("init", "-q", cwd=folder)
    git("add", "--all", cwd=folder)
    git("commit", "-q", "-m", "as it is", cwd=folder)
    return git("rev-parse", "HEAD", cwd=folder)


@pytest.mark.skipif(find_spec("pre_commit") is None, reason="pre-commit is not installed")
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is no git checkout")
def test_hooks_work_from_a_git_checkout_without_torch(tmp_path):
    """pre-commit installs the hook from git without torch; it fails on a hazard; the other one fixes it."""
    hooks, project = tmp_path / "hooks", tmp_path / "project"
    hooks.mkdir()
    project.mkdir()
    revision = repository_of_this_checkout(hooks)
    git("init", "-q", cwd=project)
    (project / ".pre-commit-config.yaml").write_text(
        CONFIG.format(repo=hooks, rev=revision), encoding="utf-8"
    )
    (project / "train.py").write_text(HAZARD, encoding="utf-8")
    (project / "notes.txt").write_text("no Python", encoding="utf-8")
    git("add", "--all", cwd=project)
    env = {**os.environ, "PRE_COMMIT_HOME": str(tmp_path / "home"), "NO_COLOR": "1"}

    found = run(*PRE_COMMIT, "run", "--all-files", cwd=project, env=env)
    assert found.returncode == 1, found.stdout + found.stderr
    assert "train.py:11:9" in found.stdout
    assert "SPG101" in found.stdout
    assert list((tmp_path / "home").rglob("site-packages/libcst"))
    assert not list((tmp_path / "home").rglob("site-packages/torch"))

    fix_hook = (*PRE_COMMIT, "run", "--all-files", "--hook-stage", "manual", "spmdguard-lint-fix")

    fixing = run(*fix_hook, cwd=project, env=env)
    assert fixing.returncode == 1
    assert "files were modified by this hook" in fixing.stdout
    assert "Fixed 1 finding in 1 file." in fixing.stdout
    assert "SPG101" in fixing.stdout
    assert (project / "train.py").read_text(encoding="utf-8") == HAZARD.replace(SET, f"sorted({SET})")

    right = HAZARD.replace("if dist.get_rank() == 0:", "if True:").replace(SET, f"sorted({SET})")
    (project / "train.py").write_text(right, encoding="utf-8")
    git("add", "--all", cwd=project)
    clean = run(*PRE_COMMIT, "run", "--all-files", cwd=project, env=env)
    assert clean.returncode == 0, clean.stdout + clean.stderr
    assert "Passed" in clean.stdout
    fixed = run(*fix_hook, cwd=project, env=env)
    assert fixed.returncode == 0, fixed.stdout + fixed.stderr
