"""Settings: where they are found, what they mean, and how mistakes in them are answered."""

from __future__ import annotations

from pathlib import Path

import pytest
from spmdguard_lint.config import Config, ConfigError, load_config, selectors, with_options

HEAD = "[tool.spmdguard.lint]\n"


def error_of(tree, text: str) -> ConfigError:
    tree({"pyproject.toml": text, "a.py": ""})
    with pytest.raises(ConfigError) as caught:
        load_config(["a.py"])
    return caught.value


def test_every_setting_is_read(tree):
    """Each setting of the table arrives in the configuration."""
    root = tree({
        "pyproject.toml": HEAD + """
            select = ["SPG9", "unknown-code"]
            ignore = ["SPG903"]
            extend-select = ["ALL"]
            per-file-ignores = {"tests/**" = ["SPG901"]}
            exclude = ["old"]
            extend-exclude = ["gen/*.py"]
            collectives = ["pkg.comm.sync"]
            rank-sources = ["pkg.comm.who"]
            uniform-functions = ["pkg.comm.agree"]
            rank-local = ["pkg.io.write"]
            preview = true
            min-certainty = "possible"
            respect-gitignore = false
            force-exclude = true
        """,
    })  # fmt: skip
    assert load_config(["."]) == Config(
        select=("SPG9", "SPG902"),
        ignore=("SPG903",),
        extend_select=("",),
        per_file_ignores=(("tests/**", ("SPG901",)),),
        exclude=("old",),
        extend_exclude=("gen/*.py",),
        collectives=("pkg.comm.sync",),
        rank_sources=("pkg.comm.who",),
        uniform_functions=("pkg.comm.agree",),
        rank_local=("pkg.io.write",),
        preview=True,
        min_certainty="possible",
        respect_gitignore=False,
        force_exclude=True,
        root=root,
        source=root / "pyproject.toml",
    )


def test_nearest_file_with_settings_counts(tree):
    """A pyproject.toml without our table is passed over; the repository's root is the last one looked at."""
    root = tree({
        "pyproject.toml": HEAD + "preview = true\n",
        "a/pyproject.toml": "[project]\nname = 'x'\n",
        "a/x.py": "",
        "repo/.git/HEAD": "",
        "repo/x.py": "",
        "b/pyproject.toml": HEAD,
        "b/x.py": "",
    })  # fmt: skip
    assert load_config(["a/x.py"]).source == root / "pyproject.toml"
    assert load_config(["b/x.py"]).source == root / "b/pyproject.toml"
    assert load_config(["repo/x.py"]).source is None
    assert load_config(["a/x.py", "b/x.py"]).source == root / "pyproject.toml"


def test_no_file_gives_the_defaults(tree):
    """Without settings the defaults hold, and `isolated` ignores the settings there are."""
    tree({"pyproject.toml": HEAD + "preview = true\n", "a.py": ""})
    assert load_config(["a.py"], isolated=True) == Config()
    assert Config().min_certainty == "likely"
    assert not Config().preview


def test_file_named_by_the_user(tree):
    """`--config` names the file to read; its globs are relative to its folder."""
    root = tree({"etc/lint.toml": HEAD + "exclude = ['x']\n", "a.py": "", "pyproject.toml": "not toml"})
    config = load_config(["a.py"], file=Path("etc/lint.toml"))
    assert (config.exclude, config.root) == (("x",), root / "etc")
    with pytest.raises(ConfigError, match=r"no such file: none\.toml"):
        load_config(["a.py"], file=Path("none.toml"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEAD + "selct = ['SPG9']\n", ["unknown setting `selct`", "did you mean `select`?"]),
        (
            HEAD + "min_certainty = 'likely'\n",
            ["unknown setting `min_certainty`", "did you mean `min-certainty`?"],
        ),
        (
            HEAD + "frobnicate = 1\n",
            ["unknown setting `frobnicate`", "the settings are collectives, exclude"],
        ),
        (
            HEAD + "select = 'SPG9'\n",
            ["expected a list of strings, saw 'SPG9'", "`select`", '["one", "two"]'],
        ),
        (HEAD + "select = [901]\n", ["expected a list of strings, saw [901]"]),
        (
            HEAD + "ignore = ['SPG910']\n",
            ["no rule has the code `SPG910`", "`ignore`", "did you mean `SPG90"],
        ),
        (HEAD + "ignore = ['cannot-pars']\n", ["`cannot-pars`", "did you mean `cannot-parse`?"]),
        (HEAD + "ignore = ['']\n", ["no rule has the code ``"]),
        (HEAD + "preview = 'yes'\n", ["expected true or false, saw 'yes'", "`preview`"]),
        (HEAD + "min-certainty = 'sure'\n", ["'sure' is no certainty", '"definite", "likely" or "possible"']),
        (HEAD + "collectives = ['a b']\n", ["`a b` is no dotted name", "`collectives`"]),
        (HEAD + "per-file-ignores = ['a']\n", ["expected a table, saw ['a']"]),
        (HEAD + "per-file-ignores = {'a.py' = ['SPGX']}\n", ["no rule has the code `SPGX`", "`a.py`"]),
        (
            "[tool.spmdguard]\nselect = ['SPG9']\n",
            ["`select` is no setting of [tool.spmdguard]", "move it below"],
        ),
        ("[tool]\nspmdguard = 3\n", ["`spmdguard` is 3, no table"]),
        ("[tool.spmdguard.lint\n", ["not valid TOML", "line 1", "--isolated"]),
        ("tool = 3\n", ["`tool` is 3, no table"]),
    ],
)
def test_mistakes_are_named_with_what_to_do(text, words, tree):
    """Every mistake says what was seen, in which file and setting, and what to write instead."""
    error = error_of(tree, text)
    assert "pyproject.toml" in error.where
    for word in words:
        assert word in str(error)


def test_file_that_is_no_text(tree):
    """A pyproject.toml that is not UTF-8 is an error, not a crash."""
    root = tree({"a.py": ""})
    (root / "pyproject.toml").write_bytes(b"\xff\xfe[tool]\n")
    with pytest.raises(ConfigError, match="not valid TOML"):
        load_config(["a.py"])


def test_mistake_on_the_command_line_ends_the_run(tree, process):
    """An unknown code in an option or a settings file ends the run with exit code 2."""
    root = tree({"a.py": "", "pyproject.toml": HEAD + "ignore = ['SPG999']\n"})
    outcome = process("lint", "a.py", cwd=root)
    assert (outcome.exit_code, outcome.out) == (2, "")
    assert outcome.err.startswith("spmdguard: error: no rule has the code `SPG999`\n  where: ")
    outcome = process("lint", "a.py", "--isolated", "--select", "SPG9O1", cwd=root)
    assert (outcome.exit_code, outcome.out) == (2, "")
    assert "where: --select" in outcome.err
    assert "did you mean `SPG90" in outcome.err


def test_selectors_are_codes_names_and_beginnings():
    """A selector is a code in any case, a name, a beginning of codes, or ALL."""
    given = ["SPG901", "spg902", "cannot-parse", "SPG9", "all"]
    assert selectors(given, "--select") == ("SPG901", "SPG902", "SPG903", "SPG9", "")


@pytest.mark.parametrize(
    ("settings", "code", "status", "expected"),
    [
        ({}, "SPG102", "stable", True),
        ({}, "SPG102", "preview", False),
        ({"preview": True}, "SPG102", "preview", True),
        ({"select": ("SPG102",)}, "SPG102", "preview", True),
        ({"select": ("SPG1",)}, "SPG102", "preview", False),
        ({"select": ("SPG1",)}, "SPG201", "stable", False),
        ({"ignore": ("SPG1",)}, "SPG102", "stable", False),
        ({"ignore": ("SPG1",), "extend_select": ("SPG102",)}, "SPG102", "stable", True),
        ({"ignore": ("SPG102",), "select": ("SPG102",)}, "SPG102", "stable", False),
        ({"ignore": ("SPG102",), "select": ("SPG1",)}, "SPG103", "stable", True),
        ({"select": ("SPG1",)}, "SPG903", "stable", True),
        ({"ignore": ("SPG9",)}, "SPG903", "stable", False),
    ],
)
def test_the_most_specific_selector_decides(settings, code, status, expected):
    """The longest fitting selector decides, `ignore` wins between equals, preview rules need asking for."""
    assert Config(**settings).looks_for(code, status) is expected


def test_options_add_to_settings_and_select_starts_afresh():
    """`--select` replaces what the file selects and ignores; the other options add to it."""
    config = Config(select=("SPG1",), ignore=("SPG901",), extend_exclude=("a",))
    added = with_options(config, {"ignore": ["SPG902"], "exclude": ["b"], "preview": True, "select": None})
    assert (added.select, added.ignore) == (("SPG1",), ("SPG901", "SPG902"))
    assert (added.extend_exclude, added.preview) == (("a", "b"), True)
    fresh = with_options(config, {"select": ["SPG9"], "ignore": ["SPG903"]})
    assert (fresh.select, fresh.ignore) == (("SPG9",), ("SPG903",))
