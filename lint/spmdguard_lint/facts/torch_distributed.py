"""Facts on ``torch.distributed`` itself: collectives, groups, identity, point-to-point, objects.

Positions were read from torch 2.13; ``tests/lint/facts/test_torch_signatures.py`` compares every one.
"""

from __future__ import annotations

from typing import Any

from .build import (
    GROUP,
    GROUP_RANK,
    P2P,
    RANK,
    UNIFORM,
    WORK,
    WORKS,
    WORLD_SIZE,
    agreed,
    exchanged,
    lifecycle,
    local,
    paired,
    varying,
)
from .fact import Arg, Fact, TypeFacts

_G0, _G1, _G2, _G3, _G4 = (Arg(i, "group") for i in range(5))
_TENSOR = Arg(0, "tensor")
_OUTPUT = Arg(0, "output")
_SRC_1, _SRC_2, _DST_1, _DST_2 = Arg(1, "src"), Arg(2, "src"), Arg(1, "dst"), Arg(2, "dst")
_TAG = (Arg(3, "tag"),)
_OP_1, _OP_2 = Arg(1, "op"), Arg(2, "op")
_HANDLE: dict[str, Any] = {"async_handle": True, "returns": WORK}
_MESH = "torch.distributed.DeviceMesh"
_STORE = "torch.distributed.Store"

FUNCTIONS: dict[str, Fact] = {
    # the result is the same on every rank of the group
    "torch.distributed.all_reduce": agreed("all_reduce", _G2, _TENSOR, invariant=(_OP_1,), **_HANDLE),
    "torch.distributed.all_reduce_coalesced": agreed(
        "all_reduce_coalesced", _G2, Arg(0, "tensors"), invariant=(_OP_1,), **_HANDLE
    ),
    "torch.distributed.all_gather": agreed("all_gather", _G2, Arg(0, "tensor_list"), **_HANDLE),
    "torch.distributed.all_gather_coalesced": agreed(
        "all_gather_coalesced", _G2, Arg(0, "output_tensor_lists"), **_HANDLE
    ),
    "torch.distributed.all_gather_into_tensor": agreed(
        "all_gather_into_tensor", _G2, Arg(0, "output_tensor"), **_HANDLE
    ),
    "torch.distributed.all_gather_object": agreed("all_gather_object", _G2, Arg(0, "object_list")),
    "torch.distributed.broadcast": agreed(
        "broadcast", _G2, _TENSOR, root=_SRC_1, invariant=(Arg(4, "group_src"),), **_HANDLE
    ),
    "torch.distributed.broadcast_object_list": agreed(
        "broadcast_object_list", _G2, Arg(0, "object_list"), root=_SRC_1, invariant=(Arg(4, "group_src"),)
    ),
    "torch.distributed.barrier": agreed("barrier", _G0, event="barrier", **_HANDLE),
    "torch.distributed.monitored_barrier": agreed("monitored_barrier", _G0, event="barrier"),
    # the result differs between the ranks
    "torch.distributed.reduce": exchanged(
        "reduce", _G3, _TENSOR, root=_DST_1, invariant=(_OP_2, Arg(5, "group_dst")), **_HANDLE
    ),
    "torch.distributed.gather": exchanged(
        "gather",
        _G3,
        Arg(1, "gather_list"),
        root=_DST_2,
        invariant=(Arg(5, "group_dst"),),
        at_root=Arg(1, "gather_list"),
        **_HANDLE,
    ),
    "torch.distributed.gather_object": exchanged(
        "gather_object",
        _G3,
        Arg(1, "object_gather_list"),
        root=_DST_2,
        invariant=(Arg(4, "group_dst"),),
        at_root=Arg(1, "object_gather_list"),
    ),
    "torch.distributed.scatter": exchanged(
        "scatter",
        _G3,
        _TENSOR,
        root=_SRC_2,
        invariant=(Arg(5, "group_src"),),
        at_root=Arg(1, "scatter_list"),
        **_HANDLE,
    ),
    "torch.distributed.scatter_object_list": exchanged(
        "scatter_object_list",
        _G3,
        Arg(0, "scatter_object_output_list"),
        root=_SRC_2,
        invariant=(Arg(4, "group_src"),),
    ),
    "torch.distributed.reduce_scatter": exchanged(
        "reduce_scatter", _G3, _OUTPUT, invariant=(_OP_2,), **_HANDLE
    ),
    "torch.distributed.reduce_scatter_tensor": exchanged(
        "reduce_scatter_tensor", _G3, _OUTPUT, invariant=(_OP_2,), **_HANDLE
    ),
    "torch.distributed.all_to_all": exchanged("all_to_all", _G2, Arg(0, "output_tensor_list"), **_HANDLE),
    "torch.distributed.all_to_all_single": exchanged("all_to_all_single", _G4, _OUTPUT, **_HANDLE),
    "torch.distributed._coalescing_manager": agreed("coalesced", _G0, wraps="context", event="coalesce"),
    "torch.distributed.breakpoint": agreed("breakpoint", None, invariant=(Arg(0, "rank"),)),
    # life cycle
    "torch.distributed.init_process_group": lifecycle(
        "init_process_group", None, "init", invariant=(Arg(0, "backend"), Arg(3, "world_size"))
    ),
    "torch.distributed.destroy_process_group": lifecycle("destroy_process_group", _G0, "destroy"),
    "torch.distributed.new_group": lifecycle(
        "new_group",
        None,
        "new-group",
        unless=Arg(4, "use_local_synchronization"),
        invariant=(Arg(0, "ranks"),),
        returns=GROUP,
    ),
    "torch.distributed.new_subgroups": lifecycle(
        "new_subgroups", _G1, "new-group", invariant=(Arg(0, "group_size"),), items=(GROUP, "")
    ),
    "torch.distributed.new_subgroups_by_enumeration": lifecycle(
        "new_subgroups_by_enumeration",
        None,
        "new-group",
        invariant=(Arg(0, "ranks_per_subgroup_list"),),
        items=(GROUP, ""),
    ),
    "torch.distributed.split_group": lifecycle(
        "split_group", Arg(0, "parent_pg"), "new-group", invariant=(Arg(1, "split_ranks"),), returns=GROUP
    ),
    "torch.distributed.shrink_group": lifecycle(
        "shrink_group", _G1, "new-group", invariant=(Arg(0, "ranks_to_exclude"),), returns=GROUP
    ),
    "torch.distributed.init_device_mesh": lifecycle(
        "init_device_mesh", None, "new-group", invariant=(Arg(1, "mesh_shape"),), returns=_MESH
    ),
    "torch.distributed.DeviceMesh": lifecycle(
        "init_device_mesh", None, "new-group", invariant=(Arg(1, "mesh"),), returns=_MESH
    ),
    # identity
    "torch.distributed.get_rank": varying("rank", group=_G0),
    "torch.distributed.get_node_local_rank": varying("rank", event="local-rank"),
    "torch.distributed.get_world_size": Fact(result="uniform", group=_G0, event="world-size"),
    "torch.distributed.is_initialized": Fact(result="uniform", event="is-initialized"),
    "torch.distributed.is_available": Fact(result="uniform", event="is-available"),
    "torch.distributed.is_torchelastic_launched": UNIFORM,
    "torch.distributed.is_nccl_available": UNIFORM,
    "torch.distributed.is_gloo_available": UNIFORM,
    "torch.distributed.is_mpi_available": UNIFORM,
    "torch.distributed.is_backend_available": UNIFORM,
    "torch.distributed.get_backend": Fact(result="uniform", group=_G0),
    "torch.distributed.get_backend_config": Fact(result="uniform", group=_G0),
    "torch.distributed.get_default_backend_for_device": UNIFORM,
    "torch.distributed.get_group_rank": Fact(result="pure", group=_G0, event="get-group-rank"),
    "torch.distributed.get_global_rank": Fact(result="pure", group=_G0, event="get-global-rank"),
    "torch.distributed.get_process_group_ranks": Fact(result="uniform", group=_G0, event="group-ranks"),
    "torch.distributed._rank_not_in_group": varying("group-rank", group=_G0, event="not-in-group"),
    "torch.distributed.rendezvous": local("init"),
    "torch.distributed.TCPStore": local("init", returns="torch.distributed.TCPStore"),
    # point-to-point
    "torch.distributed.send": paired("send", _G2, root=_DST_1, invariant=_TAG),
    "torch.distributed.recv": paired("recv", _G2, _TENSOR, root=_SRC_1, invariant=_TAG),
    "torch.distributed.isend": paired("isend", _G2, root=_DST_1, invariant=_TAG, **_HANDLE),
    "torch.distributed.irecv": paired("irecv", _G2, _TENSOR, root=_SRC_1, invariant=_TAG, **_HANDLE),
    "torch.distributed.batch_isend_irecv": paired(
        "batch_isend_irecv", None, async_handle=True, returns=WORKS
    ),
    "torch.distributed.P2POp": Fact(event=P2P),
    "torch.distributed.send_object_list": paired("send_object_list", _G2, root=_DST_1),
    "torch.distributed.recv_object_list": paired("recv_object_list", _G2, Arg(0, "object_list"), root=_SRC_1),
}

TYPES: dict[str, TypeFacts] = {
    WORK: TypeFacts(
        methods={
            "wait": Fact(event="wait"),
            "synchronize": Fact(event="wait"),
            "get_future": Fact(event="wait"),
            "result": Fact(event="wait"),
            "is_completed": varying("order"),
        }
    ),
    WORKS: TypeFacts(iterate=Fact(result="uniform", returns=WORK)),
    GROUP: TypeFacts(
        methods={
            "rank": GROUP_RANK,
            "size": WORLD_SIZE,
            "name": UNIFORM,
            "barrier": agreed("barrier", event="barrier", **_HANDLE),
            "monitored_barrier": agreed("monitored_barrier", event="barrier"),
            "allreduce": agreed("all_reduce", None, Arg(0, "tensors"), **_HANDLE),
            "allreduce_coalesced": agreed("all_reduce_coalesced", None, Arg(0, "tensors"), **_HANDLE),
            "broadcast": agreed("broadcast", None, Arg(0, "tensors"), **_HANDLE),
            "allgather": agreed("all_gather", None, Arg(0, "output_tensors"), **_HANDLE),
            "reduce": exchanged("reduce", None, Arg(0, "tensors"), **_HANDLE),
            "gather": exchanged("gather", None, Arg(0, "output_tensors"), **_HANDLE),
            "scatter": exchanged("scatter", None, Arg(0, "output_tensors"), **_HANDLE),
            "reduce_scatter": exchanged("reduce_scatter", None, Arg(0, "output_tensors"), **_HANDLE),
            "alltoall": exchanged("all_to_all", None, Arg(0, "output_tensors"), **_HANDLE),
            "alltoall_base": exchanged("all_to_all_single", None, Arg(0, "output"), **_HANDLE),
            "send": paired("send", None, **_HANDLE),
            "recv": paired("recv", None, Arg(0, "tensors"), **_HANDLE),
            "shutdown": lifecycle("shutdown", None, "destroy"),
            "abort": Fact(event="abort"),
        }
    ),
    _STORE: TypeFacts(
        methods={
            "get": local("store-get", result="uniform"),
            "multi_get": local("store-get", result="uniform"),
            "set": local("store-set"),
            "multi_set": local("store-set"),
            "delete_key": local("store-set"),
            "wait": local("store-wait"),
            "add": varying("order", raises_local=True, event="store-add"),
            "compare_set": varying("order", raises_local=True, event="store-set"),
            "check": varying("order"),
            "num_keys": varying("order"),
            "barrier": agreed("store.barrier", event="barrier"),
        }
    ),
    "torch.distributed.TCPStore": TypeFacts(bases=(_STORE,)),
    "torch.distributed.FileStore": TypeFacts(bases=(_STORE,)),
    "torch.distributed.HashStore": TypeFacts(bases=(_STORE,)),
    "torch.distributed.PrefixStore": TypeFacts(bases=(_STORE,)),
    _MESH: TypeFacts(
        methods={
            "get_rank": RANK,
            "get_local_rank": GROUP_RANK,
            "get_coordinate": GROUP_RANK,
            "get_group": Fact(result="uniform", returns=GROUP),
            "get_all_groups": UNIFORM,
            "size": WORLD_SIZE,
            "_flatten": lifecycle("init_device_mesh", None, "new-group", returns=_MESH),
            "__getitem__": Fact(result="uniform", returns=_MESH),
        },
        attributes={
            "mesh": UNIFORM,
            "shape": UNIFORM,
            "ndim": UNIFORM,
            "mesh_dim_names": UNIFORM,
            "device_type": UNIFORM,
        },
    ),
}

CONSTANTS: dict[str, Fact] = {
    "torch.distributed.group.WORLD": Fact(result="uniform", returns=GROUP, event="default-group"),
    "torch.distributed.GroupMember.WORLD": Fact(result="uniform", returns=GROUP, event="default-group"),
    "torch.distributed.GroupMember.NON_GROUP_MEMBER": varying("group-rank", event="not-in-group"),
}

ALIASES: dict[str, str] = {
    "torch.distributed._all_gather_base": "torch.distributed.all_gather_into_tensor",
    "torch.distributed.all_gather_single": "torch.distributed.all_gather_into_tensor",
    "torch.distributed._reduce_scatter_base": "torch.distributed.reduce_scatter_tensor",
    "torch.distributed.reduce_scatter_single": "torch.distributed.reduce_scatter_tensor",
}

PREFIXES: dict[str, str] = {
    "torch.distributed.distributed_c10d.": "torch.distributed.",
    "torch.distributed.device_mesh.": "torch.distributed.",
    "torch.distributed.tensor.device_mesh.": "torch.distributed.",
    "torch.distributed._tensor.device_mesh.": "torch.distributed.",
    "torch._C._distributed_c10d.": "torch.distributed.",
}
