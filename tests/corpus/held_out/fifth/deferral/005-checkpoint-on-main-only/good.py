import spmdguard
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.fsdp import fully_shard


class Saver:
    def __init__(self, directory, every):
        self.directory, self.every = directory, every

    def due(self, step):
        return step > 0 and step % self.every == 0

    def save(self, model, opt, step):
        state = {"model": model.state_dict(), "opt": opt.state_dict()}
        spmdguard.save_checkpoint(
            self.directory,
            step=step,
            save_state=lambda path: dcp.save(state, checkpoint_id=path),
            keep_last=3,
        )


def build():
    net = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(4)]).cuda()
    for block in net:
        fully_shard(block)
    return fully_shard(net)


def main(steps=2000):
    spmdguard.init_process_group("nccl")
    torch.cuda.set_device(torch.distributed.get_rank() % torch.cuda.device_count())
    model = build()
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
    saver = Saver("ckpt", every=200)
    for step in range(steps):
        opt.zero_grad()
        model(torch.randn(32, 256, device="cuda")).square().mean().backward()
        opt.step()
        if saver.due(step):
            saver.save(model, opt, step)
        if spmdguard.sync_should_stop():
            break
    spmdguard.destroy_process_group()
    spmdguard.raise_if_deferred_error()


if __name__ == "__main__":
    main()
