"""What is known of environment variables of communication libraries, as data.

Names are those of torch 2.4 to 2.13 (``ProcessGroupNCCL.hpp``, ``FlightRecorder.hpp``) and of NCCL 2.18 to 2.28.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = [
    "ALLOWED_VALUES",
    "CONTRADICTIONS",
    "COSTLY",
    "MUST_AGREE",
    "NEEDS",
    "RENAMED",
    "Contradiction",
    "Cost",
]

MUST_AGREE = frozenset(
    {
        # With DETAIL each collective is preceded by others, which ranks without it never join.
        "TORCH_DISTRIBUTED_DEBUG",
        "TORCH_NCCL_USE_COMM_NONBLOCKING",
        "NCCL_ALGO",
        "NCCL_PROTO",
        "NCCL_NET",
        "NCCL_NET_PLUGIN",
        "NCCL_IB_DISABLE",
        "NCCL_P2P_DISABLE",
        "NCCL_SHM_DISABLE",
        "NCCL_BUFFSIZE",
        "NCCL_NTHREADS",
        "NCCL_MIN_NCHANNELS",
        "NCCL_MAX_NCHANNELS",
        "NCCL_NVLS_ENABLE",
        "NCCL_CUMEM_ENABLE",
        "NCCL_COLLNET_ENABLE",
    }
)
RENAMED: Mapping[str, str] = {
    "NCCL_ASYNC_ERROR_HANDLING": "TORCH_NCCL_ASYNC_ERROR_HANDLING",
    "NCCL_BLOCKING_WAIT": "TORCH_NCCL_BLOCKING_WAIT",
    "NCCL_DESYNC_DEBUG": "TORCH_NCCL_DESYNC_DEBUG",
    "NCCL_ENABLE_TIMING": "TORCH_NCCL_ENABLE_TIMING",
    "NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK": "TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK",
    "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": "TORCH_FR_DUMP_TEMP_FILE",
    "TORCH_NCCL_TRACE_BUFFER_SIZE": "TORCH_FR_BUFFER_SIZE",
    "TORCH_NCCL_TRACE_CPP_STACK": "TORCH_FR_CPP_STACK",
    "NCCL_IB_CUDA_SUPPORT": "NCCL_NET_GDR_LEVEL",
    "NCCL_MAX_NRINGS": "NCCL_MAX_NCHANNELS",
    "NCCL_MIN_NRINGS": "NCCL_MIN_NCHANNELS",
    "NCCL_TREE_THRESHOLD": "NCCL_ALGO",
    "NCCL_LL_THRESHOLD": "NCCL_PROTO",
}
ALLOWED_VALUES: Mapping[str, tuple[str, ...]] = {
    "TORCH_DISTRIBUTED_DEBUG": ("OFF", "INFO", "DETAIL"),
    "NCCL_DEBUG": ("VERSION", "WARN", "INFO", "TRACE", "ABORT", "NONE"),
    "TORCHELASTIC_USE_AGENT_STORE": ("True", "False"),
}
NEEDS: Mapping[str, str] = {
    "NCCL_DEBUG_SUBSYS": "NCCL_DEBUG",
    "NCCL_DEBUG_FILE": "NCCL_DEBUG",
    "TORCH_FR_DUMP_TEMP_FILE": "TORCH_NCCL_DUMP_ON_TIMEOUT",
    "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": "TORCH_NCCL_DUMP_ON_TIMEOUT",
}
"""A variable, and the one without which it has no effect."""


class Cost(NamedTuple):
    """A value that costs: the values (``()`` for any but off), and what they cost."""

    values: tuple[str, ...]
    price: str


COSTLY: Mapping[str, Cost] = {
    "TORCH_NCCL_BLOCKING_WAIT": Cost(
        (), "the CPU waits for every collective; kernels no longer overlap with it"
    ),
    "TORCH_DISTRIBUTED_DEBUG": Cost(("DETAIL",), "a barrier and two gathers before every collective"),
    "CUDA_LAUNCH_BLOCKING": Cost((), "the CPU waits for every kernel"),
    "NCCL_DEBUG": Cost(("TRACE", "INFO"), "many lines of log from every rank"),
    "NCCL_P2P_DISABLE": Cost((), "GPUs of one host exchange through memory of the CPU"),
    "NCCL_SHM_DISABLE": Cost((), "ranks of one host exchange through the network"),
    "NCCL_IB_DISABLE": Cost((), "InfiniBand and RoCE are not used"),
    "TORCH_NCCL_DESYNC_DEBUG": Cost((), "each collective is recorded in the store"),
    "TORCH_NCCL_ENABLE_TIMING": Cost((), "two CUDA events for each collective"),
    "TORCH_NCCL_NAN_CHECK": Cost((), "every input of a collective is read once more"),
    "PYTORCH_NO_CUDA_MEMORY_CACHING": Cost((), "every allocation goes to the driver"),
}


class Contradiction(NamedTuple):
    """Two variables, the values that make the contradiction (``()`` for any), and why."""

    one: str
    values: tuple[str, ...]
    other: str
    why: str


CONTRADICTIONS: tuple[Contradiction, ...] = (
    Contradiction("NCCL_IB_DISABLE", ("1",), "NCCL_IB_HCA", "it names devices that are switched off"),
    Contradiction("NCCL_P2P_DISABLE", ("1",), "NCCL_P2P_LEVEL", "it limits what is switched off"),
    Contradiction(
        "TORCH_NCCL_BLOCKING_WAIT",
        ("1", "true", "True"),
        "TORCH_NCCL_ASYNC_ERROR_HANDLING",
        "with blocking waits the asynchronous handling of errors is off",
    ),
    Contradiction(
        "TORCH_NCCL_ENABLE_MONITORING", ("0",), "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", "nobody watches it"
    ),
    Contradiction("NCCL_NET_DISABLE", ("1",), "NCCL_NET", "it names a network that is switched off"),
)
