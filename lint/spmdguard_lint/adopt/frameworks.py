"""Remarks on a program that trains with a framework: which of spmdguard's adapters it lacks, and what to write.

A framework is known by what a call calls: a name that the file imports, or a class of the program made from one.
A program that names the adapter anywhere has it. Cost: O(n).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import libcst as cst

from ..fixes.script import Script, walk
from .notes import Note
from .program import Program


@dataclass(frozen=True)
class _Framework:
    """A class or function by its packages and name, and its adapter.

    ``guarded`` is what to write, of ``{target}``, the name that gets the object, ``{made}``, the call that makes it,
    ``{opened}``, the same without its end, and ``{callbacks}``. ``loop`` is the method that holds the training
    loop, where that is the framework's own.
    """

    packages: tuple[str, ...]
    name: str
    title: str
    module: str
    adapter: str
    guarded: str
    target: str
    loop: str = ""
    others: tuple[str, ...] = ()

    def is_called(self, dotted: str) -> bool:
        """Whether a dotted name is this one, wherever in its package."""
        return dotted.partition(".")[0] in self.packages and dotted.rpartition(".")[2] == self.name


_LIGHTNING = ("lightning", "pytorch_lightning")
_HUGGING_FACE = _Framework(
    ("transformers",),
    "Trainer",
    "Hugging Face's",
    "transformers",
    "guard_trainer",
    "guard_trainer({target})  # behind `{target} = {made}`: it adds `SpmdguardTrainerCallback`",
    "trainer",
    loop="train",
    others=("SpmdguardTrainerCallback",),
)
_TRAINER = _Framework(
    _LIGHTNING,
    "Trainer",
    "Lightning's",
    "lightning",
    "SpmdguardCallback",
    "{target} = {opened}, callbacks=[{callbacks}SpmdguardCallback()])",
    "trainer",
    loop="fit",
)
_FRAMEWORKS = (
    _HUGGING_FACE,
    replace(_HUGGING_FACE, name="Seq2SeqTrainer"),
    _TRAINER,
    replace(
        _TRAINER,
        name="LightningCLI",
        guarded='{opened}, trainer_defaults={{"callbacks": [SpmdguardCallback()]}})',
        target="cli.trainer",
    ),
    _Framework(
        (*_LIGHTNING, "lightning_fabric"),
        "Fabric",
        "Lightning's",
        "lightning",
        "guard_fabric",
        "{target} = guard_fabric({made})",
        "fabric",
    ),
    _Framework(
        ("accelerate",),
        "Accelerator",
        "Accelerate's",
        "accelerate",
        "guard_accelerator",
        "{target} = guard_accelerator({made})  # before `prepare`",
        "accelerator",
    ),
    _Framework(
        ("deepspeed",),
        "initialize",
        "DeepSpeed's",
        "deepspeed",
        "guard_engine",
        "guard_engine({target})  # behind `{target}, ... = {made}`",
        "engine",
    ),
)


def framework_notes(program: Program, has_loop: bool) -> list[Note]:
    """For each adapter that the program lacks, one note on the first call that it is for.

    ``has_loop``: it holds a training loop of its own.
    """
    known = {name: imported(script) for name, script in program.scripts.items()}
    made = _subclasses(program, known)
    words = {
        n.value for script in program.scripts.values() for n in walk(script.module) if isinstance(n, cst.Name)
    }
    notes: list[Note] = []
    for script in program.scripts.values():
        names = known[script.source.filename]
        for node in walk(script.module):
            if not isinstance(node, cst.Call):
                continue
            found = _named(node.func, names, made)
            if found is not None and not words & {found.adapter, *found.others}:
                words.add(found.adapter)
                notes.append(_note(script, node, found, names, has_loop))
    return notes


def imported(script: Script) -> dict[str, str]:
    """What the names that a file's imports bind stand for."""
    names: dict[str, str] = {}
    for node in walk(script.module):
        if isinstance(node, cst.ImportFrom) and node.module is not None and not node.relative:
            module = ".".join(_parts(node.module))
            for alias in node.names if not isinstance(node.names, cst.ImportStar) else ():
                names[_bound(alias)] = f"{module}.{alias.evaluated_name}"
        elif isinstance(node, cst.Import):
            for alias in node.names:
                dotted = alias.evaluated_name
                names[_bound(alias)] = dotted if alias.asname is not None else dotted.partition(".")[0]
    return names


def _bound(alias: cst.ImportAlias) -> str:
    return alias.evaluated_alias or alias.evaluated_name.partition(".")[0]


def _subclasses(program: Program, known: Mapping[str, Mapping[str, str]]) -> dict[str, _Framework]:
    """The program's own classes that are made from a framework's, by name."""
    made: dict[str, _Framework] = {}
    for script in program.scripts.values():
        for node in walk(script.module):
            for base in node.bases if isinstance(node, cst.ClassDef) else ():
                found = _named(base.value, known[script.source.filename], made)
                if found is not None and isinstance(node, cst.ClassDef):
                    made[node.name.value] = found
    return made


def _named(
    node: cst.BaseExpression, names: Mapping[str, str], made: Mapping[str, _Framework]
) -> _Framework | None:
    parts = _parts(node)
    if not parts:
        return None
    if parts[-1] in made:
        return made[parts[-1]]
    if parts[0] not in names:
        return None
    dotted = ".".join((names[parts[0]], *parts[1:]))
    return next((framework for framework in _FRAMEWORKS if framework.is_called(dotted)), None)


def _note(
    script: Script, call: cst.Call, found: _Framework, names: Mapping[str, str], has_loop: bool
) -> Note:
    target = _target(script, call) or found.target
    made = f"{script.code(call.func)}(...)"
    imports, lines = [f"from spmdguard.integrations.{found.module} import {found.adapter}"], []
    has_run = "spmdguard.run" in names.values()
    if found.loop and not has_run:
        imports.insert(0, "from spmdguard import run")
        lines = [f"@run()  # above the function that calls `{target}.{found.loop}(...)`"]
    elif not found.loop and not has_loop:
        imports.insert(0, "from spmdguard import run, sync_should_stop")
        lines = ["if sync_should_stop(): break  # at the end of each step"]
        lines += [] if has_run else ["@run()  # above the function that holds the loop"]
    guarded = found.guarded.format(target=target, made=made, opened=made[:-1], callbacks=_callbacks(call))
    what = "holds the training loop, which is not guarded" if found.loop else "is not guarded"
    text = "\n    ".join([f"remark: {found.title} `{found.name}` {what}. Write:", *imports, guarded, *lines])
    return Note(script.source.filename, script.positions[call].start.line, text)


def _callbacks(call: cst.Call) -> str:
    """What stands before the callback, where the call has some already."""
    given = any(arg.keyword is not None and arg.keyword.value == "callbacks" for arg in call.args)
    return "..., " if given else ""


def _parts(node: cst.CSTNode) -> list[str]:
    """The parts of a dotted name; none of anything else."""
    if isinstance(node, cst.Name):
        return [node.value]
    if isinstance(node, cst.Attribute):
        owner = _parts(node.value)
        return [*owner, node.attr.value] if owner else []
    return []


def _target(script: Script, call: cst.Call) -> str | None:
    """The name that gets what a call makes; the first of several."""
    parent = script.parents[call]
    if not isinstance(parent, (cst.Assign, cst.AnnAssign)):
        return None
    first: cst.CSTNode = parent.targets[0].target if isinstance(parent, cst.Assign) else parent.target
    if isinstance(first, (cst.Tuple, cst.List)) and first.elements:
        first = first.elements[0].value
    return ".".join(_parts(first)) or None
