import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Allowance:
    def __init__(self, limit):
        self.limit = limit
        self.used = 0

    def take(self, tokens):
        self.used += tokens
        return self.used < self.limit


def pad(docs, length=128):
    out = torch.zeros(len(docs), length, dtype=torch.long)
    for i, doc in enumerate(docs):
        out[i, : min(len(doc), length)] = torch.tensor(doc[:length])
    return out


def train_on(model, optimizer, pages, allowance):
    for page in pages:
        batch = pad(page)
        loss = torch.nn.functional.cross_entropy(model(batch).flatten(0, 1), batch.flatten(), ignore_index=0)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        tokens = (batch != 0).sum()
        dist.all_reduce(tokens)
        if not allowance.take(int(tokens)):
            return False
    return True


def main(books, vocab, limit=1_000_000):
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DDP(torch.nn.Sequential(torch.nn.Embedding(vocab, 64), torch.nn.Linear(64, vocab)))
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.02)
    allowance = Allowance(limit)
    for pages in books:
        if not train_on(model, optimizer, pages, allowance):
            break
    dist.destroy_process_group()
