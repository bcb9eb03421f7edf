import os

import torch
import torch.distributed as dist
import torch.nn as nn

N_LAYERS = 8


class StageModel(nn.Module):
    """Layers of one pipeline stage; some have no bias, the head is on the last one."""

    def __init__(self, stage: int, stages: int):
        super().__init__()
        per = N_LAYERS // stages
        self.layers = nn.ModuleDict()
        for i in range(stage * per, (stage + 1) * per):
            self.layers[str(i)] = nn.Linear(64, 64, bias=i % 3 == 0)
        self.head = nn.Linear(64, 1000, bias=False) if stage == stages - 1 else None


class Merger:
    def __init__(self, model: StageModel, stages: int):
        self.model, self.stages = model, stages
        self.rank = dist.get_rank()
        self.state = {}

    def _broadcast(self, tensor, name: str, src: int) -> None:
        weight = tensor.detach().contiguous() if self.rank == src and tensor is not None else None
        meta = [None if weight is None else (tuple(weight.shape), weight.dtype)]
        dist.broadcast_object_list(meta, src=src)
        if meta[0] is None:
            if self.rank == 0:
                print(f"{name} does not exist, skipped")
            return
        shape, dtype = meta[0]
        if weight is None:
            weight = torch.empty(shape, dtype=dtype, device="cuda")
        dist.broadcast(weight, src=src)
        if self.rank == 0:
            self.state[name] = weight.cpu()

    def merge(self) -> dict:
        per = N_LAYERS // self.stages
        for i in range(N_LAYERS):
            src = i // per
            layer = self.model.layers[str(i)] if self.rank == src else None
            self._broadcast(layer.weight if layer is not None else None, f"layers.{i}.weight", src)
            self._broadcast(layer.bias if layer is not None else None, f"layers.{i}.bias", src)
        head = self.model.head
        self._broadcast(head.weight if head is not None else None, "head.weight", self.stages - 1)
        dist.barrier()
        return self.state


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    stages = dist.get_world_size()
    if N_LAYERS % stages:
        raise SystemExit(f"{N_LAYERS} layers cannot be split over {stages} stages")
    model = StageModel(dist.get_rank(), stages).cuda()
    state = Merger(model, stages).merge()
    if dist.get_rank() == 0:
        torch.save(state, "/ckpt/merged.pt")
        print(len(state), "tensors")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
