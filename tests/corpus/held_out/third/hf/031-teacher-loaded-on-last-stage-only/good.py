from datetime import timedelta

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp


class StageModel(torch.nn.Module):
    def __init__(self, width, vocab, last):
        super().__init__()
        self.blocks = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(2))
        self.output_layer = torch.nn.Linear(width, vocab, bias=False) if last else None


class PolicyWorker:
    def __init__(self, pipeline_size, width=64, vocab=256):
        self.stage = dist.get_rank() % pipeline_size
        self.is_last = self.stage == pipeline_size - 1
        self.width, self.vocab = width, vocab
        self.student = StageModel(width, vocab, self.is_last)
        self.teacher_heads = {}

    def load_teacher_head(self, index, path):
        wanted = {}
        if self.is_last:
            wanted["output_layer.weight"] = torch.empty(self.vocab, self.width)
        dcp.load(wanted, checkpoint_id=path)
        if self.is_last:
            self.teacher_heads[index] = wanted["output_layer.weight"]

    def distillation_loss(self, hidden, index):
        if not self.is_last:
            return None
        target = (hidden @ self.teacher_heads[index].T).log_softmax(-1)
        own = self.student.output_layer(hidden).log_softmax(-1)
        return torch.nn.functional.kl_div(own, target, log_target=True, reduction="batchmean")


def main(paths=("/data/teacher_a", "/data/teacher_b")):
    dist.init_process_group("cpu:gloo", timeout=timedelta(minutes=10))
    worker = PolicyWorker(pipeline_size=2)
    for index, path in enumerate(paths):
        worker.load_teacher_head(index, path)
    loss = worker.distillation_loss(torch.randn(8, 64), index=0)
    if loss is not None:
        loss.backward()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
