"""Facts on spmdguard's own runtime: what its decorators, agreements and life-cycle calls mean."""

from __future__ import annotations

from .build import BARRIER, IS_MAIN, agreed, lifecycle
from .fact import Arg, Fact

FUNCTIONS: dict[str, Fact] = {
    # an error inside is kept for later: no exception leaves
    "spmdguard.rank_local": Fact(wraps="decorator", suppresses=True, event="defer"),
    "spmdguard.try_or_defer": Fact(wraps="call", suppresses=True, event="defer"),
    "spmdguard.deferring": Fact(wraps="context", suppresses=True, event="defer"),
    "spmdguard.defer_error": Fact(event="defer-error"),
    "spmdguard.collective": Fact(wraps="decorator", result="arg0", event="mark-collective"),
    "spmdguard.has_deferred_error": Fact(result="varying", varying="exception", event="deferred-error"),
    "spmdguard.deferred_error": Fact(result="varying", varying="exception", event="deferred-error"),
    "spmdguard.raise_if_deferred_error": Fact(event="raise-if-deferred"),
    # agreements
    "spmdguard.sync_should_stop": agreed("sync_should_stop", Arg(-1, "group"), event="sync-stop"),
    "spmdguard.stop_reason": Fact(result="uniform", event="stop-reason"),
    "spmdguard.barrier": BARRIER,
    "spmdguard.main_process_first": agreed("main_process_first", wraps="context", event="main-first"),
    "spmdguard.is_main_process": IS_MAIN,
    "spmdguard.save_checkpoint": agreed(
        "save_checkpoint",
        callee=Arg(-1, "save_state"),
        event="checkpoint-save",
        invariant=(Arg(0, "directory"),),
    ),
    "spmdguard.latest_checkpoint": agreed("latest_checkpoint", certainty="likely"),
    # life cycle
    "spmdguard.run": Fact(wraps="call", event="run", afterwards="post_train"),
    "spmdguard.handshake": lifecycle("handshake", None, "handshake"),
    "spmdguard.init_process_group": lifecycle("init_process_group", None, "init"),
    "spmdguard.destroy_process_group": lifecycle("destroy_process_group", None, "destroy"),
    "spmdguard.fail_fast": Fact(event="fail-fast"),
    "spmdguard.watch": Fact(wraps="context", event="watch"),
}

LOOSE_ROOTS: tuple[str, ...] = ("spmdguard.",)
