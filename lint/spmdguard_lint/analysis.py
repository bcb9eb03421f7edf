"""The whole-project analysis: every relevant function is read, divergences are judged in context, rules report.

A function that other functions call is read twice: on its own, with symbolic parameters, and in the context
of each caller. The reading in context wins: what is matched in every context is no defect, and what only a
context shows is reported in the callee with the calls that lead there.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .interpreter.machine import Machine
from .model import CERTAINTY_ORDER, Finding, Location, Site
from .names.one_rank import run_by_one_rank
from .source.parsing import CannotParse
from .traces.contents import Contents, contents_of
from .traces.divergence import Divergence, Verdicts, find_divergences
from .traces.nodes import Branch, Call, Loop, Op, Tree, Try, Yielded, every_node
from .traces.paths import forget_conditions
from .values.value import Place, keys_of_a_run

if TYPE_CHECKING:
    from .names.functions import FunctionInfo
    from .names.modules import Module
    from .names.project import Project
    from .rules.support_trees import Step
    from .traces.files import Access


@dataclass
class Root:
    """A function or module body that was read on its own."""

    module: Module
    function: FunctionInfo | None
    tree: Tree
    divergences: list[Divergence] = field(default_factory=list)
    exceeded: bool = False
    truncated: bool = False

    @property
    def name(self) -> str:
        return self.function.qualname if self.function is not None else self.module.name

    @cached_property
    def contents(self) -> Contents:
        """What stands in the tree at all."""
        return contents_of(self.tree)

    @cached_property
    def steps(self) -> list[Step]:
        """Every node of the tree with what encloses it; many rules ask."""
        from .rules.support_trees import steps

        return list(steps(self.tree))

    @cached_property
    def accesses(self) -> list[Access]:
        """The file operations of the tree, rank by rank."""
        from .traces.files import accesses

        return accesses(self.tree)


@dataclass
class Analysis:
    """What the rules see."""

    project: Project
    config: Any
    roots: list[Root] = field(default_factory=list)
    divergences: list[Divergence] = field(default_factory=list)
    followed: frozenset[int] = frozenset()
    in_handlers: dict[Place, Tree] = field(default_factory=dict)

    def entry_roots(self) -> list[Root]:
        """Roots that no other root calls: the places where whole runs are seen."""
        return [r for r in self.roots if r.function is None or id(r.function) not in self.followed]

    @cached_property
    def unseen_roots(self) -> list[Root]:
        """Roots with operations that no whole run comes to: what callers give leads another way, or is not known."""
        seen: set[Place] = set()
        for root in self.entry_roots():
            seen |= _operations(root)
        found: list[Root] = []
        for places, root in sorted(
            ((_operations(root), root) for root in self.roots), key=lambda each: -len(each[0])
        ):
            if not places <= seen:
                seen |= places
                found.append(root)
        return found


def _operations(root: Root) -> set[Place]:
    """Where the operations of a tree stand."""
    return {node.place for node in every_node(root.tree, apart=True) if isinstance(node, Op)}


def analyse(project: Project, config: Any = None, progress: Any = None) -> list[Finding]:
    """All findings of all rules, unfiltered."""
    from .rules.registry import checks

    checks_of_rules = list(
        checks()
    )  # imports them all: what modules make stays when a run's keys are forgotten
    enabled = gc.isenabled()
    gc.disable()
    try:
        with keys_of_a_run():
            analysis = read_project(project, config, progress)
            findings = list(budget_findings(analysis))
            for _info, check in checks_of_rules:
                findings.extend(check(analysis))
            return unique(findings)
    finally:
        forget_conditions()
        if enabled:
            gc.enable()


def read_project(project: Project, config: Any = None, progress: Any = None) -> Analysis:
    """Interpret every relevant function and judge its divergences."""
    machine = Machine(project, config)
    analysis = Analysis(project, config)
    modules = project.relevant_modules()
    if progress is not None:
        progress.phase("analysing", len(modules))
    alone = run_by_one_rank(modules)
    roots_of = {id(module): functions_to_read(machine, module, alone) for module in modules}
    machine.share_budget(sum(len(functions) + 1 for functions in roots_of.values()))
    verdicts = Verdicts()
    for module in modules:
        for root in module_roots(machine, module, roots_of[id(module)]):
            root.divergences = find_divergences(root.tree, verdicts)
            analysis.roots.append(root)
        if progress is not None:
            progress.advance()
    analysis.followed = frozenset(machine.followed)
    analysis.in_handlers = dict(machine.in_handlers)
    for root in analysis.roots:
        uncalled(machine, root, verdicts)
    analysis.divergences = in_context(analysis.roots, machine.decided)
    return analysis


def uncalled(machine: Machine, root: Root, verdicts: Verdicts) -> None:
    """A function that a framework calls, or another project: its decorators say on which ranks it runs."""
    function = root.function
    if function is None or not function.decorators or id(function) in machine.followed:
        return
    tree = machine.as_decorated(function, root.tree)
    if tree is not root.tree:
        root.tree = tree
        root.divergences = find_divergences(tree, verdicts)


def functions_to_read(machine: Machine, module: Module, alone: set[FunctionInfo]) -> list[FunctionInfo]:
    """The functions of a module that are read on their own; none where the file cannot be parsed.

    Those that one rank ``alone`` runs are read where they are called.
    """
    try:
        return [
            function
            for function in module.all_functions
            if function not in alone and machine.worth_a_root(function)
        ]
    except CannotParse:
        return []


def module_roots(machine: Machine, module: Module, functions: list[FunctionInfo]) -> Iterable[Root]:
    """The module's body, then each of its functions and context managers."""
    try:
        module.outline  # noqa: B018 - parsing is lazy; a file that cannot be parsed is reported by the engine
    except CannotParse:
        return
    tree = machine.run_module(module)
    yield Root(module, None, tree, exceeded=machine.exceeded, truncated=machine.truncated)
    paired = paired_methods(module)
    for function in functions:
        if function in paired:
            continue
        yield Root(
            module,
            function,
            machine.run_function(function),
            exceeded=machine.exceeded,
            truncated=machine.truncated,
        )
    for enter, leave in {id(pair): pair for pair in paired.values()}.values():
        yield Root(
            module,
            enter,
            machine.run_pair(enter, leave),
            exceeded=machine.exceeded,
            truncated=machine.truncated,
        )


def paired_methods(module: Module) -> dict[FunctionInfo, tuple[FunctionInfo, FunctionInfo]]:
    """``__enter__`` and ``__exit__`` of one class, read together."""
    found: dict[FunctionInfo, tuple[FunctionInfo, FunctionInfo]] = {}
    for cls in module.all_classes:
        for first, second in (("__enter__", "__exit__"), ("__aenter__", "__aexit__")):
            enter, leave = cls.methods.get(first), cls.methods.get(second)
            if enter is not None and leave is not None:
                found[enter] = found[leave] = (enter, leave)
    return found


def in_context(roots: list[Root], decided: Iterable[Place] = ()) -> list[Divergence]:
    """Keep a divergence of a callee only where a context bears it out; ``decided`` are branches that none has."""
    seen_in_context: set[Place] = set(decided)
    for root in roots:
        collect_places(root.tree, seen_in_context, inside=False)
    bad_in_context: dict[tuple[Place, str], str] = {}
    for root in roots:
        for divergence in root.divergences:
            if divergence.calls:
                key = (divergence.condition_place, divergence.shape)
                if bad_in_context.get(key, "possible") == "possible":
                    bad_in_context[key] = divergence.certainty
    best: dict[tuple[Place, str, bool], Divergence] = {}
    for root in roots:
        for divergence in root.divergences:
            place = divergence.condition_place
            if not divergence.calls and place in seen_in_context:
                borne_out = bad_in_context.get((place, divergence.shape))
                if borne_out is None or (borne_out == "possible" and divergence.certainty != "possible"):
                    continue
            which = (place, divergence.shape, divergence.subgroup)
            known = best.get(which)
            if known is None or _strength(divergence) < _strength(known):
                best[which] = divergence
    return list(best.values())


def _strength(divergence: Divergence) -> tuple[int, int]:
    order = {"definite": 0, "likely": 1, "possible": 2}
    return (order[divergence.certainty], len(divergence.calls))


def collect_places(tree: Tree, found: set[Place], *, inside: bool) -> None:
    """Places of branches, loops and tries that were read inside a followed call.

    A block that is resumed inside a generator stands in the function that consumes the generator.
    """
    stack: list[tuple[Tree, tuple[bool, ...]]] = [(tree, (inside,))]
    while stack:
        nodes, within = stack.pop()
        for node in nodes:
            if within[-1] and isinstance(node, (Branch, Loop, Try)):
                found.add(node.place)
            deeper = within
            if isinstance(node, Call):
                deeper = (*within, True)
            elif isinstance(node, Yielded) and len(within) > 1:
                deeper = within[:-1]
            for child in node.subtrees():
                stack.append((child, deeper))
            if isinstance(node, Try) and within[-1]:
                found.update(handler.place for handler in node.handlers)


def budget_findings(analysis: Analysis) -> Iterable[Finding]:
    """SPG904 for every root whose budget ended."""
    for root in analysis.roots:
        if not root.exceeded and not root.truncated:
            continue
        row = root.function.node.lineno if root.function is not None else 1
        place = Location(row, 1)
        yield Finding(
            code="SPG904",
            name="analysis-budget-exceeded",
            severity="warning" if root.exceeded else "info",
            certainty="definite",
            message=f"`{root.name}` was not analysed to its end: it takes more steps than one function may"
            if root.exceeded
            else f"`{root.name}` reaches more code than is followed from one function; calls beyond that are not seen",
            help="split the function, or move the part that calls collectives into a function of its own",
            site=Site(root.module.filename, place, place),
        )


def unique(findings: list[Finding]) -> list[Finding]:
    """One finding per code and place: the surest, and of equals the first."""
    kept: dict[tuple[str, Site], Finding] = {}
    for finding in findings:
        key = (finding.code, finding.site)
        known = kept.get(key)
        if known is None or CERTAINTY_ORDER[finding.certainty] < CERTAINTY_ORDER[known.certainty]:
            kept[key] = finding
    return list(kept.values())
