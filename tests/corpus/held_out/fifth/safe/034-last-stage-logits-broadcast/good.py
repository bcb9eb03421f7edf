import os

import torch
import torch.distributed as dist


class PipelinedGenerator:
    def __init__(self, stage_module, group, hidden: int, vocab: int, eos: int):
        self.net, self.group, self.hidden, self.vocab, self.eos = stage_module, group, hidden, vocab, eos
        self.ranks = dist.get_process_group_ranks(group)
        self.stage = self.ranks.index(dist.get_rank())
        self.last = len(self.ranks) - 1

    def _from_last(self, size, dtype, tensor=None):
        if self.stage == self.last:
            assert tuple(tensor.shape) == tuple(size) and tensor.dtype == dtype
            tensor = tensor.contiguous()
        else:
            tensor = torch.empty(size, dtype=dtype, device="cuda")
        dist.broadcast(tensor, src=self.ranks[self.last], group=self.group)
        return tensor

    @torch.no_grad()
    def _forward(self, tokens):
        batch, length = tokens.shape
        if self.stage == 0:
            h = self.net(tokens)
        else:
            h = torch.empty(batch, length, self.hidden, device="cuda")
            dist.recv(h, src=self.ranks[self.stage - 1], group=self.group)
            h = self.net(h)
        if self.stage != self.last:
            dist.send(h.contiguous(), dst=self.ranks[self.stage + 1], group=self.group)
            return None
        return h[:, -1]

    def generate(self, prompt, max_new: int):
        tokens = prompt
        finished = torch.zeros(len(prompt), dtype=torch.bool, device="cuda")
        for _ in range(max_new):
            logits = self._forward(tokens)
            choice = logits.argmax(-1) if logits is not None else None
            choice = self._from_last((len(prompt),), torch.long, choice)
            tokens = torch.cat([tokens, choice[:, None]], dim=1)
            finished |= choice == self.eos
            if bool(finished.all()):
                break
        return tokens


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    rank, world = dist.get_rank(), dist.get_world_size()
    assert world >= 2
    group = dist.new_group(list(range(world)))
    if rank == 0:
        net = torch.nn.Embedding(1000, 64)
    elif rank == world - 1:
        net = torch.nn.Linear(64, 1000)
    else:
        net = torch.nn.Linear(64, 64)
    gen = PipelinedGenerator(net.cuda(), group, 64, 1000, eos=0)
    torch.manual_seed(5)
    prompt = torch.randint(1, 1000, (4, 8)).cuda()
    out = gen.generate(prompt, 32)
    if rank == 0:
        print(out.shape)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
