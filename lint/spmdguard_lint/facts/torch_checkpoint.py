"""Facts on ``torch.distributed.checkpoint`` and the state-dict helpers: every rank takes part."""

from __future__ import annotations

from .build import agreed, exchanged
from .fact import Arg, Fact, TypeFacts

_NO_DIST = Arg(-1, "no_dist")
_GROUP = Arg(-1, "process_group")
_PENDING = "torch.distributed.checkpoint.Pending"  # of our own naming: the future of a save of all ranks
_PATHS = (Arg(-1, "checkpoint_id"), Arg(-1, "storage_writer"))

FUNCTIONS: dict[str, Fact] = {
    "torch.distributed.checkpoint.save": agreed(
        "checkpoint.save",
        _GROUP,
        unless=_NO_DIST,
        event="checkpoint-save",
        raises_local=True,
        paths=_PATHS,
    ),
    "torch.distributed.checkpoint.async_save": agreed(
        "checkpoint.async_save",
        _GROUP,
        unless=_NO_DIST,
        event="checkpoint-save",
        raises_local=True,
        paths=_PATHS,
        async_handle=True,
        returns=_PENDING,
    ),
    "torch.distributed.checkpoint.save_state_dict": agreed(
        "checkpoint.save",
        Arg(2, "process_group"),
        unless=Arg(4, "no_dist"),
        event="checkpoint-save",
        raises_local=True,
        paths=(Arg(1, "storage_writer"),),
    ),
    "torch.distributed.checkpoint.load": agreed(
        "checkpoint.load", _GROUP, Arg(0, "state_dict"), unless=_NO_DIST, event="checkpoint-load"
    ),
    "torch.distributed.checkpoint.load_state_dict": agreed(
        "checkpoint.load",
        Arg(2, "process_group"),
        Arg(0, "state_dict"),
        unless=Arg(4, "no_dist"),
        event="checkpoint-load",
    ),
    "torch.distributed.checkpoint.load_sharded_optimizer_state_dict": exchanged(
        "checkpoint.load", event="checkpoint-load"
    ),
    "torch.distributed.checkpoint.format_utils.dcp_to_torch_save": Fact(raises_local=True, event="write"),
    "torch.distributed.checkpoint.format_utils.torch_save_to_dcp": Fact(raises_local=True, event="write"),
    # sharded state is gathered, plain state is not
    "torch.distributed.checkpoint.state_dict.get_model_state_dict": exchanged(
        "get_model_state_dict", when_sharded=True
    ),
    "torch.distributed.checkpoint.state_dict.get_optimizer_state_dict": exchanged(
        "get_optimizer_state_dict", when_sharded=True
    ),
    "torch.distributed.checkpoint.state_dict.get_state_dict": exchanged("get_state_dict", when_sharded=True),
    "torch.distributed.checkpoint.state_dict.set_model_state_dict": agreed(
        "set_model_state_dict", when_sharded=True
    ),
    "torch.distributed.checkpoint.state_dict.set_optimizer_state_dict": agreed(
        "set_optimizer_state_dict", when_sharded=True
    ),
    "torch.distributed.checkpoint.state_dict.set_state_dict": agreed("set_state_dict", when_sharded=True),
}

TYPES: dict[str, TypeFacts] = {
    "torch.distributed.checkpoint.FileSystemReader": TypeFacts(
        methods={"read_metadata": Fact(raises_local=True, event="read")}
    ),
    "torch.distributed.checkpoint.FileSystemWriter": TypeFacts(),
    # the ranks tell each other what has failed while they save, and all raise
    _PENDING: TypeFacts(
        bases=("concurrent.futures.Future",),
        methods={"result": Fact(event="wait"), "exception": Fact(event="wait", result="uniform")},
    ),
}

ALIASES: dict[str, str] = {
    "torch.distributed.checkpoint.filesystem.FileSystemReader": (
        "torch.distributed.checkpoint.FileSystemReader"
    ),
    "torch.distributed.checkpoint.filesystem.FileSystemWriter": (
        "torch.distributed.checkpoint.FileSystemWriter"
    ),
}

PREFIXES: dict[str, str] = {
    "torch.distributed.checkpoint.state_dict_saver.": "torch.distributed.checkpoint.",
    "torch.distributed.checkpoint.state_dict_loader.": "torch.distributed.checkpoint.",
    "torch.distributed.checkpoint.optimizer.": "torch.distributed.checkpoint.",
}
