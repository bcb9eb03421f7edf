"""The vocabulary of the fact tables: what a known function, method, attribute or type means to a group.

Terminology: a *collective* is called by all ranks of a group in the same order; a *lifecycle* call
(``init_process_group``, ``new_group``, ``destroy_process_group``) too, but is no data exchange;
*point-to-point* calls pair two ranks and take no part in collective traces. A *rank source* yields a
rank-varying value; the ``varying`` kinds are listed in ``VARYING_KINDS``. A result is *uniform* when
every rank of the group gets the same value (all_reduce, broadcast, all_gather), which resets rank variance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

VARYING_KINDS = (
    "rank",  # get_rank, RANK, is_main_process, ...
    "group-rank",  # get_rank(group): varies, negative for non-members
    "time",  # clocks
    "random",  # unseeded random numbers
    "filesystem",  # exists, listdir, stat
    "data",  # per-rank data: loader items, model outputs, losses
    "environment",  # host name, pid, per-host environment
    "exception",  # whether and which exception was raised
    "signal",  # set by a signal handler
    "order",  # iteration order of a set, completion order of futures
)


@dataclass(frozen=True, slots=True)
class Arg:
    """Where an argument stands in a call: positional index (receiver not counted) and keyword."""

    index: int
    keyword: str


@dataclass(frozen=True, slots=True)
class Fact:
    """What one known callable or attribute means.

    ``op``: name in the collective trace (``"all_reduce"``), or None when no collective.
    ``kind``: "collective" | "lifecycle" | "point-to-point" | "request" (takes part in traces, and nobody waits in it)
        | "" (no communication).
    ``group``: where the group is passed; None means the default group.
    ``root``: the argument that must be rank-invariant (``src``/``dst``); ``invariant``: further ones.
    ``paths``: where each rank writes its part, or reads it: what together they name must be rank-invariant.
    ``buffers``: arguments made rank-invariant in place when the call returns (all_reduce's tensor).
    ``result``: "uniform" | "pure" (depends on the arguments alone) | "varying" (see ``varying``) |
        "receiver" (returns its receiver) | "arg0" (returns its first argument) |
        "args" (returns its arguments, wrapped the same way: a tuple for several).
    ``varying``: one of VARYING_KINDS when ``result`` is "varying".
    ``returns``: canonical qualified name of the type of the result, when known.
    ``returns_if``: an argument and the type of the result where it is given.
    ``main_only``: for a predicate that is true on one rank: "main" | "local_main" | "last" | "one" (any
        other single rank); for a decorator, context manager or call that runs its body or function on those
        ranks only, likewise with ``wraps``.
    ``wraps``: how a function argument or the body of a ``with`` is used: "" | "decorator" | "context" |
        "call" (run at once; event "thread-run": in another thread) | "thread" (when its object is started) |
        "search" (as often as its own results ask for: a line search) |
        "spawn" (as the main program of further ranks) | "handler" (some time later, by the interpreter).
    ``async_handle``: returns a handle to wait on if ``async_op=True`` (or always, for isend).
    ``raises_local``: may raise on one rank alone (files, network, trackers).
    ``event``: a name that rules look for ("destroy", "mkdir", ...); ``events.EVENTS`` lists them.
    ``suppresses``: a context manager that swallows exceptions (``contextlib.suppress``).
    ``noreturn``: never returns (``sys.exit``).
    ``certainty``: how sure the fact is: "definite" | "likely" | "possible".
    ``each``: makes one such operation for each item of this argument (a dict of metrics).
    ``when``: communicates only if this argument is given and truthy (Lightning's ``sync_dist``).
    ``unless``: communicates except if this argument is given and truthy (DCP's ``no_dist``).
    ``when_sharded``: communicates only if its receiver or first argument is (or stems from) a sharded type:
        FSDP, ``fully_shard``, tensor parallel, ZeRO-3, DTensor (for ``clip_grad_norm_`` and the like).
    ``during``: communicates only while a function of one of these names runs (a hook of the framework).
    ``told``: communicates only if this pattern stands somewhere in the text of the project.
    ``unless_named``: does not communicate where this pattern stands in what the program calls its receiver.
    ``sure_if_told``: a fact that is merely possible is likely where this pattern stands in the text of the project.
    ``outputs``: arguments written in place with rank-varying data (``recv``'s tensor, ``scatter``'s output).
    ``retypes``: argument whose object becomes of type ``returns`` in place (``fully_shard``'s module).
    ``items``: canonical type names of the items of a returned tuple; "" where unknown.
    ``at_root``: the list that the root alone gives (``gather_list``).
    ``callee``: where that function stands, if it is not the first argument.
    ``trips``: the argument that decides how often a loop over the result runs (batches to skip).
    ``afterwards``: the option that gives what the main rank alone runs when the function that is run has ended.
    ``parts``: facts on the items of a returned tuple, where they differ: ``(rank, world_size)``.
    """

    op: str | None = None
    kind: str = ""
    group: Arg | None = None
    root: Arg | None = None
    invariant: tuple[Arg, ...] = ()
    paths: tuple[Arg, ...] = ()
    each: Arg | None = None
    buffers: tuple[Arg, ...] = ()
    result: str = "pure"
    varying: str = ""
    returns: str = ""
    returns_if: tuple[Arg, str] | None = None
    main_only: str = ""
    wraps: str = ""
    async_handle: bool = False
    raises_local: bool = False
    event: str = ""
    suppresses: bool = False
    noreturn: bool = False
    certainty: str = "definite"
    when: Arg | None = None
    unless: Arg | None = None
    when_sharded: bool = False
    during: frozenset[str] = frozenset()
    told: str = ""
    unless_named: str = ""
    sure_if_told: str = ""
    outputs: tuple[Arg, ...] = ()
    retypes: Arg | None = None
    items: tuple[str, ...] = ()
    parts: tuple[Fact, ...] = ()
    trips: Arg | None = None
    callee: Arg | None = None
    at_root: Arg | None = None
    afterwards: str = ""


@dataclass(frozen=True, slots=True)
class TypeFacts:
    """What is known about a type of a library.

    ``bases``: canonical names of known base types, whose facts hold too.
    ``methods`` / ``attributes``: facts by name; an attribute's ``returns`` is its type, also that of a
        parameter of this name in a method of a derived class. Reading an attribute may communicate.
    ``call``: what calling an instance means (``model(x)``). Event "synced-forward": ``backward()`` on
        anything computed from the result is a collective (``lookup.BACKWARD``).
    ``iterate``: what the items of ``for x in instance`` are; event "uniform-count": as many on every rank.
    ``sharded``: parameters and state are spread over the ranks (see ``Fact.when_sharded``).
    ``hooks``: names of methods that the library calls on every rank alike, with the types of their parameters
        (receiver not counted), "" where unknown, "data" for this rank's own data.
    ``other``: what any method not listed means (a tracker's client: each call may raise).
    """

    bases: tuple[str, ...] = ()
    methods: Mapping[str, Fact] = field(default_factory=dict)
    attributes: Mapping[str, Fact] = field(default_factory=dict)
    call: Fact | None = None
    iterate: Fact | None = None
    sharded: bool = False
    hooks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    other: Fact | None = None
