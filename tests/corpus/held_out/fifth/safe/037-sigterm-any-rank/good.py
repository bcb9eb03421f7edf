import argparse
import os
import signal
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_model_state_dict
from torch.distributed.fsdp import fully_shard


class DistSignal:
    def __init__(self, sig=signal.SIGTERM):
        self.sig, self._got, self._old = sig, False, None

    def __enter__(self):
        self._old = signal.getsignal(self.sig)
        signal.signal(self.sig, self._on)
        return self

    def _on(self, signum, frame):
        self._got = True

    def __exit__(self, *exc):
        signal.signal(self.sig, self._old)

    def received(self):
        mine = torch.tensor([int(self._got)], dtype=torch.int32, device="cuda")
        out = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
        dist.all_gather(out, mine)
        return [bool(t.item()) for t in out]


def train(args, model, opt) -> int:
    with DistSignal() as handler:
        for it in range(args.iters):
            model(torch.randn(8, 512, device="cuda")).square().mean().backward()
            opt.step()
            opt.zero_grad()
            saved = False
            if args.save_interval and (it + 1) % args.save_interval == 0:
                dcp.save({"model": get_model_state_dict(model)}, checkpoint_id=f"{args.save}/{it}")
                saved = True
            if args.exit_signal and any(handler.received()):
                if not saved:
                    dcp.save({"model": get_model_state_dict(model)}, checkpoint_id=f"{args.save}/{it}")
                return it
    return args.iters


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--iters", type=int, default=1000)
    ap.add_argument("--save", default="/ckpt")
    ap.add_argument("--save-interval", type=int, default=200)
    ap.add_argument("--exit-signal", action="store_true")
    args = ap.parse_args()
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(4)]).cuda()
    fully_shard(model)
    done = train(args, model, torch.optim.AdamW(model.parameters()))
    if dist.get_rank() == 0:
        print("stopped at", done)
    dist.destroy_process_group()
    sys.exit(0)


if __name__ == "__main__":
    main()
