import json
import logging
import os
from typing import Optional

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import fully_shard

log = logging.getLogger(__name__)


class ExportCallback:
    def __init__(self, out_dir: Optional[str], config_path: str, enabled: bool = True):
        self.out_dir, self.config_path, self.enabled = out_dir, config_path, enabled

    def _read_config(self) -> Optional[dict]:
        try:
            with open(self.config_path) as f:
                return json.load(f)
        except (OSError, ValueError) as err:
            log.error("cannot read %s: %s", self.config_path, err)
            return None

    def post_train(self, model) -> None:
        if not self.enabled or self.out_dir is None:
            log.info("export disabled")
            dist.barrier()
            return

        # collective: each rank contributes its shard, rank 0 gets the tensors
        opts = StateDictOptions(full_state_dict=True, cpu_offload=True)
        weights = get_model_state_dict(model, options=opts)

        if dist.get_rank() == 0:
            cfg = self._read_config()
            if cfg is None:
                log.error("no experiment config, nothing exported")
                dist.barrier()
                return
            if "architecture" not in cfg:
                log.error("config has no architecture, nothing exported")
                dist.barrier()
                return
            os.makedirs(self.out_dir, exist_ok=True)
            torch.save({k: v.to(torch.bfloat16) for k, v in weights.items()}, f"{self.out_dir}/model.pt")
            with open(f"{self.out_dir}/config.json", "w") as f:
                json.dump({"architecture": cfg["architecture"], "dtype": "bfloat16"}, f)
            log.info("exported to %s", self.out_dir)

        dist.barrier()


def main():
    logging.basicConfig(level=logging.INFO)
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 256)).cuda()
    fully_shard(model)
    opt = torch.optim.AdamW(model.parameters())
    for _ in range(100):
        model(torch.randn(8, 256, device="cuda")).square().mean().backward()
        opt.step()
        opt.zero_grad()
    ExportCallback("/ckpt/export", "/ckpt/config.json").post_train(model)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
