"""What is known of environment variables of communication libraries, as data."""

from __future__ import annotations

__all__ = ["MUST_AGREE"]

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
