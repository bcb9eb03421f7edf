import torch
import torch.distributed as dist


def token_logps(logits, tokens):
    logps = logits.log_softmax(dim=-1)
    return logps.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)


def one_hot(tokens, vocab):
    return torch.zeros(*tokens.shape, vocab).scatter_(-1, tokens.unsqueeze(-1), 1.0)


def main():
    dist.init_process_group("gloo")
    gen = torch.Generator().manual_seed(dist.get_rank())
    logits = torch.randn(2, 5, 11, generator=gen)
    tokens = torch.randint(0, 11, (2, 5), generator=gen)
    logps = token_logps(logits, tokens)
    if dist.get_rank() == 0:
        best = torch.gather(logits, -1, logits.argmax(-1, keepdim=True))
        print(best.mean().item(), one_hot(tokens, 11).scatter(-1, tokens.unsqueeze(-1), 0.0).sum().item())
    total = logps.sum().reshape(1)
    dist.all_reduce(total)
    assert total.item() < 0
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
