import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

EOS = 2


class TinyLM(nn.Module):
    def __init__(self, vocab=64, width=32):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.head = nn.Linear(width, vocab)

    def forward(self, tokens):
        h = self.embed(tokens)
        for block in self.blocks:
            h = h + torch.tanh(block(h))
        return self.head(h)


@torch.no_grad()
def rollout(model, prompt, limit=48):
    tokens = prompt
    finished = torch.zeros(prompt.shape[0], dtype=torch.bool, device=prompt.device)
    for _ in range(limit):
        logits = model(tokens)[:, -1]
        new = torch.multinomial(logits.softmax(-1), 1)
        tokens = torch.cat([tokens, new], dim=1)
        finished |= new.squeeze(1) == EOS
        if finished.all():
            break
    return tokens


def main():
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    torch.manual_seed(0)
    model = TinyLM().to(device)
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    torch.manual_seed(100 + dist.get_rank())
    for _ in range(5):
        prompt = torch.randint(3, 64, (4, 6), device=device)
        answer = rollout(model, prompt)
        print(f"rank {dist.get_rank()} answered with {answer.shape[1] - 6} tokens")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
