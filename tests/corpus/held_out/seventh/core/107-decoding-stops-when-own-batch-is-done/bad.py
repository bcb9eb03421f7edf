from datetime import timedelta

import torch
import torch.distributed as dist

EOS, PAD, VOCAB, WIDTH = 1, 0, 40, 16


class PartitionedHead:
    """Output layer whose rows are spread over the processes."""

    def __init__(self):
        rows = VOCAB // dist.get_world_size()
        self.rows = torch.randn(rows, WIDTH)

    def __call__(self, hidden):
        parts = [torch.empty_like(self.rows) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, self.rows)
        return hidden @ torch.cat(parts).T


@torch.no_grad()
def sample(head, table, tokens, limit=30):
    done = torch.zeros(len(tokens), dtype=torch.bool)
    while tokens.size(1) < limit:
        logits = head(table[tokens[:, -1]])
        logits[:, EOS] += tokens.size(1) / 2  # long texts come to an end
        picked = torch.multinomial(logits.softmax(-1), 1).squeeze(1)
        picked[done] = PAD
        tokens = torch.cat([tokens, picked[:, None]], dim=1)
        done |= picked == EOS
        if done.all():
            break
    return tokens


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    torch.manual_seed(3)
    table = torch.randn(VOCAB, WIDTH)
    torch.manual_seed(dist.get_rank())
    head = PartitionedHead()
    texts = sample(head, table, torch.randint(2, VOCAB, (3, 1)))
    print(f"rank {dist.get_rank()} made {(texts != PAD).sum().item()} tokens")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
