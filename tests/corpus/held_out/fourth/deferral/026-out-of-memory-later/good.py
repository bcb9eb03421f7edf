import torch
import torch.distributed as dist
import spmdguard
from torch.nn.parallel import DistributedDataParallel


def forward_backward(model, tokens):
    logits = model(tokens[:, :-1])
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    return loss.detach()


class Decoder(torch.nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed = torch.nn.Embedding(vocab, dim)
        self.mix = torch.nn.LSTM(dim, dim, batch_first=True)
        self.head = torch.nn.Linear(dim, vocab)

    def forward(self, tokens):
        return self.head(self.mix(self.embed(tokens))[0])


def train(batches, vocab, dim=512):
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    model = DistributedDataParallel(Decoder(vocab, dim).cuda())
    opt = torch.optim.AdamW(model.parameters(), lr=2e-4)
    for tokens in batches:
        forward_backward(model, tokens.cuda())
        opt.step()
        opt.zero_grad(set_to_none=True)
        if spmdguard.sync_should_stop():
            break
    return model.module


def main(batches, vocab):
    spmdguard.run(lambda: train(batches, vocab))
