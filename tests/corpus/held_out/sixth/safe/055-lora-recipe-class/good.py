import logging
import os
import time
from functools import partial
from pathlib import Path
from typing import Any, Dict, Optional

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.checkpoint.state_dict import (StateDictOptions, get_model_state_dict,
                                                     get_optimizer_state_dict, set_model_state_dict,
                                                     set_optimizer_state_dict)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard
from torch.utils.data import DataLoader, DistributedSampler

from recipe_lib import LoraLinear, build_decoder, build_dataset, collate_sft

log = logging.getLogger("recipe")
ADAPTER = "adapter"


def trainable_names(model):
    return {n for n, p in model.named_parameters() if "lora_" in n}


class LoraRecipe:
    def __init__(self, cfg):
        self.cfg = cfg
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.is_rank_zero = self.rank == 0
        self.device = torch.device("cuda", torch.cuda.current_device())
        self.accum = cfg.gradient_accumulation_steps
        self.epochs_run = self.global_step = 0
        self.out = Path(cfg.output_dir)
        self.metric_file = None
        self.profiler = None

    # ------------------------------------------------------------------ setup
    def read_checkpoints(self):
        """Rank 0 reads; the others get flags and hand in empty dicts later."""
        base: Dict[str, Any] = {}
        extra: Optional[Dict[str, Any]] = None
        if self.is_rank_zero:
            base = torch.load(self.cfg.base_checkpoint, map_location="cpu", mmap=True, weights_only=True)
            path = self.out / "recipe_state.pt"
            if self.cfg.resume and path.exists():
                extra = torch.load(path, map_location="cpu", weights_only=True)
        facts = [None if extra is None else {k: extra[k] for k in ("epochs_run", "global_step", "seed")}]
        dist.broadcast_object_list(facts, src=0, device=self.device)
        return base, extra, facts[0]

    def setup(self):
        base, extra, facts = self.read_checkpoints()
        if facts is not None:
            self.epochs_run, self.global_step = facts["epochs_run"], facts["global_step"]
            if facts["seed"] != self.cfg.seed:
                raise ValueError(f"seed {self.cfg.seed} but the checkpoint has {facts['seed']}")
        torch.manual_seed(self.cfg.seed)
        self.model = self.setup_model(base, extra, facts is not None)
        self.optim = torch.optim.AdamW([p for p in self.model.parameters() if p.requires_grad], lr=self.cfg.lr)
        if facts is not None:
            set_optimizer_state_dict(self.model, self.optim, extra["optim"] if extra is not None else {},
                                     options=StateDictOptions(full_state_dict=True, broadcast_from_rank0=True))
        ds, self.sampler = build_dataset(self.cfg.dataset), None
        self.sampler = DistributedSampler(ds, self.world, self.rank, shuffle=True, seed=self.cfg.seed)
        self.loader = DataLoader(ds, self.cfg.batch_size, sampler=self.sampler, drop_last=True,
                                 collate_fn=partial(collate_sft, pad=0, ignore=-100))
        self.steps_per_epoch = len(self.loader) // self.accum
        if self.cfg.max_steps_per_epoch and self.cfg.max_steps_per_epoch < self.steps_per_epoch:
            self.steps_per_epoch = self.cfg.max_steps_per_epoch
            self.global_step = self.epochs_run * self.steps_per_epoch
        if self.is_rank_zero:
            self.out.mkdir(parents=True, exist_ok=True)
            self.metric_file = open(self.out / "metrics.txt", "a")
            if self.cfg.profile:
                self.profiler = torch.profiler.profile(schedule=torch.profiler.schedule(wait=5, warmup=2, active=2))
                self.profiler.start()
        dist.barrier()

    def setup_model(self, base, extra, resumed):
        t0 = time.perf_counter()
        with torch.device("meta"):
            model = build_decoder(self.cfg.model)
        names = trainable_names(model)
        for n, p in model.named_parameters():
            p.requires_grad_(n in names)
        mesh = init_device_mesh("cuda", (self.world,))
        offload = {"offload_policy": CPUOffloadPolicy()} if self.cfg.cpu_offload else {}
        for layer in model.layers:
            fully_shard(layer, mesh=mesh, **offload)
        fully_shard(model, mesh=mesh, **offload)
        model.to_empty(device="cpu" if self.cfg.cpu_offload else self.device)
        opts = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True, strict=False)
        set_model_state_dict(model, base, options=opts)
        if resumed:
            set_model_state_dict(model, extra[ADAPTER] if extra is not None else {}, options=opts)
        else:
            for m in model.modules():
                if isinstance(m, LoraLinear):
                    m.initialize_parameters()
        for m in model.modules():
            if hasattr(m, "rope_init"):
                m.rope_init(self.device)
        dist.barrier()
        if self.is_rank_zero:
            log.info("model ready in %.1fs", time.perf_counter() - t0)
        return model

    # ------------------------------------------------------------- checkpoint
    def save(self, epoch):
        final = epoch + 1 >= self.cfg.epochs
        opts = StateDictOptions(full_state_dict=True, cpu_offload=True)
        weights = get_model_state_dict(self.model, options=opts)
        adapter = {k: v for k, v in weights.items() if "lora_" in k}
        optim = None
        if not final:
            optim = get_optimizer_state_dict(self.model, self.optim, options=opts)
        if self.is_rank_zero:
            torch.save(adapter, self.out / f"adapter_{epoch}.pt")
            if not self.cfg.adapter_only:
                merged = merge_lora(weights, self.cfg.lora_alpha / self.cfg.lora_rank)
                torch.save(merged, self.out / f"model_{epoch}.pt")
            if optim is not None:
                torch.save({ADAPTER: adapter, "optim": optim, "epochs_run": epoch + 1,
                            "global_step": self.global_step, "seed": self.cfg.seed}, self.out / "recipe_state.pt")
        dist.barrier()

    # ------------------------------------------------------------------- loop
    def loss_sum(self, batch):
        tokens, labels = batch["tokens"].to(self.device), batch["labels"].to(self.device)
        logits = self.model(tokens)
        n = (labels[:, 1:] != -100).sum()
        loss = F.cross_entropy(logits[:, :-1].flatten(0, 1).float(), labels[:, 1:].flatten(),
                               ignore_index=-100, reduction="sum")
        return loss, n

    def train(self):
        self.optim.zero_grad()
        for epoch in range(self.epochs_run, self.cfg.epochs):
            self.sampler.set_epoch(epoch)
            running, tokens, t0 = 0.0, torch.zeros((), device=self.device), time.perf_counter()
            for i, batch in enumerate(self.loader):
                if i // self.accum == self.steps_per_epoch:
                    break
                loss, n = self.loss_sum(batch)
                tokens += n
                running += loss.detach()
                loss.backward()
                if (i + 1) % self.accum:
                    continue
                dist.all_reduce(tokens)
                dist.all_reduce(running)
                scale = self.world / tokens.clamp(min=1)
                for p in self.model.parameters():
                    if p.grad is not None:
                        p.grad.mul_(scale.to(p.grad.device))
                if self.cfg.clip is not None:
                    norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.clip).full_tensor()
                else:
                    norm = None
                self.optim.step()
                self.optim.zero_grad(set_to_none=True)
                self.global_step += 1
                if self.metric_file is not None and self.global_step % self.cfg.log_every == 0:
                    rate = tokens.item() / (time.perf_counter() - t0) / self.world
                    print(f"step {self.global_step} loss {(running / tokens).item():.4f} "
                          f"norm {norm.item() if norm is not None else float('nan'):.3f} tok/s/gpu {rate:.0f}",
                          file=self.metric_file, flush=True)
                if self.profiler is not None:
                    self.profiler.step()
                running, tokens, t0 = 0.0, torch.zeros((), device=self.device), time.perf_counter()
            self.epochs_run += 1
            self.save(epoch)

    def cleanup(self):
        if self.profiler is not None:
            self.profiler.stop()
        if self.metric_file is not None:
            self.metric_file.close()
        dist.destroy_process_group()


def merge_lora(weights, scaling):
    merged = {}
    for name, w in weights.items():
        if "lora_" in name:
            continue
        stem = name.removesuffix(".weight")
        a, b = weights.get(f"{stem}.lora_a.weight"), weights.get(f"{stem}.lora_b.weight")
        merged[name] = w if a is None else w + scaling * (b @ a)
    return merged


def recipe_main(cfg):
    dist.init_process_group("cuda:nccl,cpu:gloo")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    recipe = LoraRecipe(cfg)
    recipe.setup()
    recipe.train()
    recipe.cleanup()
