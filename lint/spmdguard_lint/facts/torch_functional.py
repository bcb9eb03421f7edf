"""Facts on collectives that return their result: functional, differentiable, and helper collectives."""

from __future__ import annotations

from .build import agreed, exchanged
from .fact import Arg, Fact

_G1, _G2, _G3, _G4 = (Arg(i, "group") for i in range(1, 5))
_PG2 = Arg(2, "pg")
_SRC_1 = Arg(1, "src")

FUNCTIONS: dict[str, Fact] = {
    # functional: the result is a new tensor
    "torch.distributed._functional_collectives.all_reduce": agreed("all_reduce", _G2),
    "torch.distributed._functional_collectives.all_reduce_coalesced": agreed("all_reduce_coalesced", _G2),
    "torch.distributed._functional_collectives.all_gather_tensor": agreed("all_gather_into_tensor", _G2),
    "torch.distributed._functional_collectives.all_gather_tensor_autograd": agreed(
        "all_gather_into_tensor", _G2
    ),
    "torch.distributed._functional_collectives.all_gather_single": agreed("all_gather_into_tensor", _G2),
    "torch.distributed._functional_collectives.all_gather_single_autograd": agreed(
        "all_gather_into_tensor", _G2
    ),
    "torch.distributed._functional_collectives.all_gather_into_tensor_coalesced": agreed(
        "all_gather_into_tensor_coalesced", _G1
    ),
    "torch.distributed._functional_collectives.broadcast": agreed("broadcast", _G2, root=_SRC_1),
    "torch.distributed._functional_collectives.reduce_scatter_tensor": exchanged(
        "reduce_scatter_tensor", _G3
    ),
    "torch.distributed._functional_collectives.reduce_scatter_tensor_autograd": exchanged(
        "reduce_scatter_tensor", _G3
    ),
    "torch.distributed._functional_collectives.reduce_scatter_single": exchanged(
        "reduce_scatter_tensor", _G3
    ),
    "torch.distributed._functional_collectives.reduce_scatter_single_autograd": exchanged(
        "reduce_scatter_tensor", _G3
    ),
    "torch.distributed._functional_collectives.reduce_scatter_tensor_coalesced": exchanged(
        "reduce_scatter_tensor_coalesced", _G3
    ),
    "torch.distributed._functional_collectives.all_to_all_single": exchanged("all_to_all_single", _G3),
    "torch.distributed._functional_collectives.all_to_all_single_autograd": exchanged(
        "all_to_all_single", _G3
    ),
    "torch.distributed._functional_collectives.permute_tensor": exchanged("permute_tensor", _G2),
    "torch.distributed._functional_collectives.all_gather_inplace": agreed(
        "all_gather", _G2, Arg(0, "tensor_list")
    ),
    "torch.distributed._functional_collectives.all_reduce_inplace": agreed(
        "all_reduce", _G2, Arg(0, "tensor")
    ),
    "torch.distributed._functional_collectives.all_gather_tensor_inplace": agreed(
        "all_gather_into_tensor", _G2, Arg(0, "output_tensor")
    ),
    "torch.distributed._functional_collectives.reduce_scatter_tensor_inplace": exchanged(
        "reduce_scatter_tensor", _G3, Arg(0, "output")
    ),
    "torch.distributed._functional_collectives.all_to_all_inplace": exchanged(
        "all_to_all_single", _G4, Arg(0, "output")
    ),
    "torch.distributed._functional_collectives.wait_tensor": Fact(result="arg0", event="wait"),
    # differentiable: backward communicates too
    "torch.distributed.nn.functional.all_reduce": agreed("all_reduce", _G2, event="synced-forward"),
    "torch.distributed.nn.functional.all_gather": agreed("all_gather", _G1, event="synced-forward"),
    "torch.distributed.nn.functional._all_gather_base": agreed(
        "all_gather_into_tensor", _G2, Arg(0, "output_tensor"), event="synced-forward"
    ),
    "torch.distributed.nn.functional.broadcast": agreed(
        "broadcast", _G2, root=_SRC_1, event="synced-forward"
    ),
    "torch.distributed.nn.functional.gather": exchanged(
        "gather", _G2, root=Arg(1, "dst"), event="synced-forward"
    ),
    "torch.distributed.nn.functional.scatter": exchanged("scatter", _G2, root=_SRC_1, event="synced-forward"),
    "torch.distributed.nn.functional.reduce": exchanged(
        "reduce", _G3, root=Arg(1, "dst"), event="synced-forward"
    ),
    "torch.distributed.nn.functional.reduce_scatter": exchanged(
        "reduce_scatter", _G3, event="synced-forward"
    ),
    "torch.distributed.nn.functional.all_to_all": exchanged("all_to_all", _G2, event="synced-forward"),
    "torch.distributed.nn.functional.all_to_all_single": exchanged(
        "all_to_all_single", _G4, event="synced-forward"
    ),
    # helpers that run a function on one rank, or on all, and share its result or its exception
    "torch.distributed.collective_utils.broadcast": agreed(
        "collective_utils.broadcast", Arg(-1, "pg"), root=Arg(-1, "rank")
    ),
    "torch.distributed.collective_utils.all_gather": agreed("collective_utils.all_gather", _PG2),
    "torch.distributed.collective_utils.all_gather_object_enforce_type": agreed(
        "all_gather_object", Arg(0, "pg"), Arg(1, "object_list")
    ),
    # symmetric memory: the peers exchange their handles
    "torch.distributed._symmetric_memory.rendezvous": exchanged("symm_mem.rendezvous", _G1),
    "torch.distributed._symmetric_memory.get_symm_mem_workspace": exchanged(
        "symm_mem.rendezvous", Arg(0, "group_name"), certainty="likely"
    ),
    # private helpers that spread through training code by copying
    "torch.distributed.utils._sync_module_states": agreed("broadcast", Arg(1, "process_group")),
    "torch.distributed.utils._verify_param_shape_across_processes": agreed(
        "all_gather", Arg(0, "process_group")
    ),
    "torch.distributed._broadcast_coalesced": agreed("broadcast", Arg(0, "process_group")),
}

PREFIXES: dict[str, str] = {
    "torch.distributed.nn.": "torch.distributed.nn.functional.",
    "torch.distributed._symmetric_memory._symmetric_memory.": "torch.distributed._symmetric_memory.",
}
