"""Which files a trace tree touches, rank by rank, and between which collectives.

Terminology: an *access* is a file operation with the paths it names; its *phase* is the last operation of all
ranks before it on some path (None: none yet). Two accesses of the same phase on different ranks are not
ordered by anything. A path is a tuple of *components*; a folder's components are a prefix of those of what
stands in it. A path is *shared* when every rank computes the same one.

Cost: one walk per simulated rank (four of them: two hosts with two ranks each).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

from ..values.evaluate import rank_dependent
from ..values.value import Place, Value
from .nodes import Branch, Event, Fallible, Loop, Node, Op, Tree
from .passing import passed_by
from .paths import Facts, Path
from .sequence import Walk
from .where import Where

WORLD, LOCAL = 4, 2
RANKS = range(WORLD)
WRITES = frozenset({"write", "mkdir", "rename"})
READS = frozenset({"read", "list"})
_WAITS = frozenset({"store-wait", "store-get", "wait", "thread-join"})
KINDS = WRITES | READS | {"open", "remove"}
ASKED = frozenset({"seen"})  # whether there is such a file
_FOLDERS_TOO = ("from_pretrained", "load_dataset")  # read a folder of the name, and fetch where there is none
_PRIVATE = ("mkdtemp", "mkstemp", "mktemp", "TemporaryDirectory", "NamedTemporaryFile", "getpid", "uuid")
Components = tuple[Hashable, ...]


@dataclass(eq=False)
class Access:
    """One file operation as the ranks come to it."""

    node: Event
    index: int
    kind: str
    paths: list[Components]
    values: list[Value]
    where: Where | None
    phases: dict[int, set[Node | None]] = field(default_factory=dict)

    @property
    def ranks(self) -> set[int]:
        return set(self.phases)

    def races(self, other: Access) -> bool:
        """Whether a rank may come here while another one is at the other access."""
        return any(True for _ in self.beside(other))

    def beside(self, other: Access) -> Iterator[tuple[int, int]]:
        """Ranks that may come here while one at the other access is there, with that one: nothing orders the two."""
        for here in self.ranks - other.ranks:
            yield from ((here, there) for there in other.ranks if self.phases[here] & other.phases[there])


def accesses(tree: Tree, kinds: frozenset[str] = KINDS) -> list[Access]:
    """All file operations of a root's tree, in the order of the code."""
    found: dict[Node, Access] = {}
    order = preorder(tree)
    beside = passed_by(tree, lambda node: _concerns(node, kinds))
    for rank in RANKS:
        walk = _Accesses(rank, order, found, kinds)
        walk.passed_by = beside
        walk.run(tree, "")
    return sorted(found.values(), key=lambda access: access.index)


def _concerns(node: Node, kinds: frozenset[str]) -> bool:
    """Whether a node touches files, or orders what does."""
    if isinstance(node, Event):
        return touches_files(node, kinds) or node.name in _WAITS
    if isinstance(node, Branch):
        return node.form == "while" and asks_files(node.condition)
    return isinstance(node, Op) and node.kind != "request"


def preorder(tree: Tree) -> dict[Node, int]:
    """The position of every node in the order of the code."""
    order: dict[Node, int] = {}
    stack = [iter(tree)]
    while stack:
        node = next(stack[-1], None)
        if node is None:
            stack.pop()
            continue
        order[node] = len(order)
        stack.append(iter([inner for child in node.subtrees() for inner in child]))
    return order


class _Accesses(Walk):
    """State: the last operation of all ranks, or the loop that polls the file system."""

    def __init__(
        self, rank: int, order: dict[Node, int], found: dict[Node, Access], kinds: frozenset[str]
    ) -> None:
        super().__init__(rank=rank, world=WORLD, local=LOCAL)
        self.kinds = kinds
        self.me = rank
        self.order = order
        self.found = found
        self.groups: dict[Hashable, Facts] = {}

    def visit(self, node: Op | Event | Fallible, state: Hashable, where: Where | None) -> Hashable:
        if isinstance(node, Op):
            return state if node.kind == "request" else node
        if isinstance(node, Event) and touches_files(node, self.kinds):
            access = self.found.get(node)
            if access is None:
                access = self.found[node] = _access(node, self.order.get(node, 0), where)
            access.phases.setdefault(self.me, set()).add(state if isinstance(state, Node) else None)
        elif isinstance(node, Event) and node.name in _WAITS:
            return node
        return state

    def known(self, condition: Value, path: Path) -> bool | None:
        """The group exists in the runs that matter here."""
        exists = self.groups.get(condition.key)
        if exists is None:
            asked = (part for part in parts_of(condition) if _asks_for_group(part))
            exists = self.groups[condition.key] = frozenset((part.key, True) for part in asked)
        return super().known(condition, path._replace(facts=path.facts | exists) if exists else path)

    def choose(self, node: Branch, holds: bool, state: Hashable, where: Where | None) -> Hashable:
        """A loop that waits until a file is there orders what follows."""
        if node.form == "while" and asks_files(node.condition):
            return node
        return state


def parts_of(value: Value) -> Iterator[Value]:
    """Every value that an expression is made of, itself included."""
    stack = [value]
    while stack:
        current = stack.pop()
        yield current
        if current.tag == "expr":
            stack.extend(current.data[1])
        elif current.tag in ("ite", "tuple"):
            stack.extend(current.data)


def _asks_for_group(value: Value) -> bool:
    name = value.data[0] if value.tag == "sym" else None
    return (
        isinstance(name, tuple) and bool(name) and str(name[0]).endswith(("is_initialized", "is_available"))
    )


def asks_files(condition: Value) -> bool:
    """Whether a condition looks at the file system."""
    return any(taint.kind == "filesystem" for taint in condition.taint)


def _access(node: Event, index: int, where: Where | None) -> Access:
    kind = node.name
    if kind == "open":
        kind = "write" if writes(node) else "read"
    elif kind == "download":
        kind = "read"
    values = [*node.args, *node.keywords.values()]
    if node.receiver is not None:
        values.insert(0, node.receiver)
    values = [file_of(value) for value in values]
    return Access(node, index, kind, [components(value) for value in values], values, where)


def touches_files(node: Event, kinds: frozenset[str]) -> bool:
    """Whether a node works on files by name, in one of some ways."""
    folder = node.name == "download" and node.call.endswith(_FOLDERS_TOO)
    return node.name in kinds or (folder and "read" in kinds)


def writes(node: Event) -> bool:
    """Whether a file is opened for writing."""
    mode = node.keywords.get("mode") or (node.args[1] if len(node.args) > 1 else None)
    if mode is None and node.receiver is not None and node.args:
        mode = node.args[0]
    return mode is not None and mode.tag == "const" and any(c in str(mode.data[0]) for c in "wax+")


def appends(node: Event) -> bool:
    """Whether a file is opened for adding to its end."""
    return any(
        v.tag == "const" and str(v.data[0]).startswith("a") for v in (*node.args[1:], *node.keywords.values())
    )


def file_of(value: Value) -> Value:
    """The path behind an open file."""
    if value.tag == "extobj" and str(value.data[0]).startswith("io.") and isinstance(value.data[2], Value):
        return value.data[2]
    return value


def in_open_file(node: Event) -> bool:
    """Whether an operation works on a file that is open already."""
    values = [node.receiver, *node.args] if node.receiver is not None else list(node.args)
    return any(file_of(value) is not value for value in values)


def components(value: Value) -> Components:
    """The components of a path."""
    if value.tag == "const":
        text = value.data[0]
        if not isinstance(text, str):
            return (value.key,)
        return tuple(part for part in text.split("/") if part not in ("", ".")) or (text,)
    if value.tag == "extobj":
        payload = value.data[2]
        made = value.data[1]
        built = isinstance(made, Place) or (isinstance(made, tuple) and made[:1] == ("extobj",))
        if isinstance(payload, Value) and value.data[0] == "pathlib.Path" and built:
            return components(payload)
        return (value.key,)
    if value.tag == "expr":
        name, operands = value.data
        if name in ("call:os.path.join", "/") or name.endswith(".joinpath"):
            return tuple(part for operand in operands for part in components(operand))
        if name in (
            "str",
            "call:os.fspath",
            "call:os.path.abspath",
            "call:os.path.expanduser",
            "call:os.path.realpath",
        ):
            return components(operands[0])
        if name in ("format", "+"):
            return _pieces(operands)
    return (value.key,)


def _pieces(operands: tuple[Value, ...]) -> Components:
    """The components of a text put together from pieces: constant slashes separate them."""
    done: list[Hashable] = []
    current: list[Hashable] = []
    for operand in operands:
        if operand.tag == "const" and isinstance(operand.data[0], str):
            first, *others = operand.data[0].split("/")
            if first:
                current.append(first)
            for part in others:
                done.extend(_closed(current))
                current = [part] if part else []
        elif not current and not done:
            *before, last = components(operand)
            done.extend(before)
            current = [last]
        else:
            current.append(operand.key)
    done.extend(_closed(current))
    return tuple(done)


def _closed(pieces: list[Hashable]) -> list[Hashable]:
    return pieces if len(pieces) <= 1 else [("joined", *pieces)]


def shared(value: Value) -> bool:
    """Whether every rank computes the same path."""
    return not any(t.kind != "filesystem" or any(word in t.text for word in _PRIVATE) for t in value.taint)


def inside(folder: Components, path: Components) -> bool:
    """Whether a path is a folder itself or stands in it."""
    return len(folder) <= len(path) and path[: len(folder)] == folder


def guarded_by_rank(where: Where | None) -> bool:
    """Whether a condition on the rank stands around a node."""
    return any(isinstance(w.node, Branch) and rank_dependent(w.node.condition) for w in chain(where))


def chain(where: Where | None) -> Iterator[Where]:
    """The nodes around."""
    return iter(where) if where is not None else iter(())


def polls(where: Where | None) -> bool:
    """Whether a node stands under a test of the file system."""
    return any(
        (isinstance(w.node, Branch) and asks_files(w.node.condition))
        or (
            isinstance(w.node, Loop)
            and any(t.kind == "filesystem" for t in w.node.trip)
            and w.node.form == "while"
        )
        for w in chain(where)
    )
