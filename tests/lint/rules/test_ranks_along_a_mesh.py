"""``pp_rank``, ``tp_rank`` and their like: ranks along one dimension of the mesh, by the names that programs use."""

from __future__ import annotations

from tests.lint.rules.marked import agree

CODES = ("SPG101", "SPG102", "SPG104", "SPG401")


def test_collectives_of_the_world_below_a_test_of_a_stage() -> None:
    """A parameter, a field computed from it, an attribute of settings; a share of the layers that grows."""
    assert agree(
        """
        import torch.distributed as dist
        import torch.distributed.checkpoint as dcp

        class Head:
            def __init__(self, pp_rank, pp_size):
                self.is_last = pp_rank == pp_size - 1

            def load(self, state, path):
                if not self.is_last:
                    return  # SPG102
                dcp.load(state, checkpoint_id=path)

        class Layer:
            def __init__(self, mesh):
                self.tp_rank = mesh.tp_rank

            def tell(self, x):
                if self.tp_rank == 0:
                    dist.broadcast(x, 0)  # SPG101

        def told(args):
            if args.pipeline_parallel_rank == 0:
                dist.barrier()  # SPG101

        def growing(layers, pp_rank):
            for layer in layers[: pp_rank + 1]:
                dist.barrier()  # SPG401
        """,
        *CODES,
    )


def test_what_belongs_below_such_a_test() -> None:
    """Collectives of a group of the mesh, messages, local work; shares of the layers as long on every stage."""
    assert agree(
        """
        import torch.distributed as dist

        def grouped(x, pp_rank, pp_size, tp_group):
            if pp_rank == pp_size - 1:
                dist.all_reduce(x, group=tp_group)

        def passed_on(x, pp_rank, pp_size):
            if pp_rank > 0:
                dist.recv(x, src=pp_rank - 1)
            if pp_rank < pp_size - 1:
                dist.send(x, dst=pp_rank + 1)

        def printed(x, tp_rank):
            dist.all_reduce(x)
            if tp_rank == 0:
                print(x)

        def shared_out(layers, pp_rank, pp_size):
            per = len(layers) // pp_size
            for layer in layers[pp_rank * per : (pp_rank + 1) * per]:
                dist.barrier()

        def numbered(pp_rank, n):
            for i in range(pp_rank * n, (pp_rank + 1) * n):
                dist.barrier()
        """,
        *CODES,
    )
