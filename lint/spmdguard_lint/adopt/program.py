"""The files of a training program, and who calls whom in them, as far as names tell.

Terminology: a function *trains* when it, or a function of the program that it calls, calls both ``backward``
and ``step``. A *training loop* trains in each round; the innermost of them is the *step loop*, whose rounds are
steps, the others are *outer loops*. Calls are resolved by name: plain names to functions, ``self.name`` and
methods of an object made in the same file, or in the same expression, to methods.
Cost: O(n) for each question, remembered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import libcst as cst

from ..fixes.script import Script, walk
from ..source.reading import SourceFile

STEPPING = frozenset({"backward", "step"})
LOOPS = (cst.For, cst.While)
Loop = cst.For | cst.While


class Program:
    """The scripts by file name, with their functions by name; raises ``CannotEdit`` for a file not to be edited."""

    def __init__(self, sources: Mapping[str, SourceFile]) -> None:
        self.scripts = {name: Script(source) for name, source in sources.items()}
        self.functions: dict[str, cst.FunctionDef] = {}
        self.methods: dict[str, cst.FunctionDef] = {}
        self.script_of: dict[cst.CSTNode, Script] = {}
        self.classes: set[str] = set()
        self._reached: dict[cst.CSTNode, frozenset[str]] = {}
        for script in self.scripts.values():
            for node in walk(script.module):
                if isinstance(node, cst.ClassDef):
                    self.classes.add(node.name.value)
                elif isinstance(node, cst.FunctionDef):
                    self.script_of[node] = script
                    in_class = isinstance(self.scope_of(script, node), cst.ClassDef)
                    (self.methods if in_class else self.functions)[node.name.value] = node
        self.made = {name for script in self.scripts.values() for name in self._instances(script)}

    @staticmethod
    def scope_of(script: Script, node: cst.CSTNode) -> cst.CSTNode:
        """The function, class or module around a node."""
        scopes = (cst.FunctionDef, cst.ClassDef, cst.Module)
        return next(outer for outer in script.around(node) if isinstance(outer, scopes))

    def _instances(self, script: Script) -> Iterator[str]:
        """Names that hold an object of one of the program's classes."""
        for node in walk(script.module):
            if isinstance(node, cst.Assign) and isinstance(node.value, cst.Call):
                made = node.value.func
                if isinstance(made, cst.Name) and made.value in self.classes:
                    targets = (target.target for target in node.targets)
                    yield from (target.value for target in targets if isinstance(target, cst.Name))

    def target(self, call: cst.Call) -> cst.FunctionDef | None:
        """The program's function that a call calls."""
        func = call.func
        if isinstance(func, cst.Name):
            return self.functions.get(func.value)
        if not isinstance(func, cst.Attribute):
            return None
        owner = func.value
        if isinstance(owner, cst.Call):  # Trainer(args).fit()
            is_known = isinstance(owner.func, cst.Name) and owner.func.value in self.classes
        else:
            is_known = isinstance(owner, cst.Name) and (owner.value == "self" or owner.value in self.made)
        return self.methods.get(func.attr.value) if is_known else None

    def calls(self, node: cst.CSTNode) -> Iterator[cst.Call]:
        """The calls in a piece of code, without those in functions that are only defined there."""
        stack = [node]
        while stack:
            top = stack.pop()
            if isinstance(top, cst.Call):
                yield top
            if top is node or not isinstance(top, (cst.FunctionDef, cst.ClassDef, cst.Lambda)):
                stack.extend(reversed(top.children))

    def reached(self, node: cst.CSTNode, seen: frozenset[cst.CSTNode] = frozenset()) -> frozenset[str]:
        """Which of ``backward`` and ``step`` a piece of code comes to."""
        known = self._reached.get(node)
        if known is not None:
            return known
        found: set[str] = set()
        for call in self.calls(node):
            if isinstance(call.func, cst.Attribute) and call.func.attr.value in STEPPING:
                found.add(call.func.attr.value)
            target = self.target(call)
            if target is not None and target not in seen:
                found |= self.reached(target.body, seen | {target})
        result = frozenset(found)
        if not seen:
            self._reached[node] = result
        return result

    def trains(self, node: cst.CSTNode) -> bool:
        """Whether a piece of code takes training steps."""
        return self.reached(node) >= STEPPING

    def training_loops(self) -> Iterator[tuple[Script, Loop, bool]]:
        """Every training loop, and whether it is a step loop."""
        for script in self.scripts.values():
            for node in walk(script.module):
                if isinstance(node, LOOPS) and self.trains(node.body):
                    yield script, node, not self._has_inner(node.body, frozenset())

    def _has_inner(self, node: cst.CSTNode, seen: frozenset[cst.CSTNode]) -> bool:
        """Whether a training loop stands in a piece of code, or in a function that it calls."""
        for inner in walk(node):
            if isinstance(inner, LOOPS) and self.trains(inner.body):
                return True
        targets = {target for call in self.calls(node) if (target := self.target(call)) is not None}
        return any(self._has_inner(t.body, seen | targets) for t in targets - seen)
