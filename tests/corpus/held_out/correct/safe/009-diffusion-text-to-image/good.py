"""Text-to-image fine-tuning of a latent diffusion UNet, with EMA and validation images."""
import argparse
import logging
import os
import shutil
from datetime import timedelta

import torch
import torch.nn.functional as F
from accelerate import Accelerator, InitProcessGroupKwargs
from accelerate.utils import ProjectConfiguration, broadcast_object_list, set_seed
from datasets import load_dataset
from diffusers import AutoencoderKL, DDPMScheduler, StableDiffusionPipeline, UNet2DConditionModel
from diffusers.optimization import get_scheduler
from diffusers.training_utils import EMAModel
from torchvision import transforms
from tqdm.auto import tqdm
from transformers import CLIPTextModel, CLIPTokenizer

logger = logging.getLogger(__name__)


def options():
    ap = argparse.ArgumentParser()
    ap.add_argument("--base", required=True)
    ap.add_argument("--dataset", required=True)
    ap.add_argument("--output_dir", default="sd-model")
    ap.add_argument("--resolution", type=int, default=512)
    ap.add_argument("--batch", type=int, default=4)
    ap.add_argument("--max_train_steps", type=int, default=15000)
    ap.add_argument("--num_epochs", type=int, default=100)
    ap.add_argument("--accum", type=int, default=1)
    ap.add_argument("--checkpointing_steps", type=int, default=500)
    ap.add_argument("--checkpoints_total_limit", type=int, default=None)
    ap.add_argument("--resume", default=None)
    ap.add_argument("--validation_prompts", nargs="*", default=[])
    ap.add_argument("--validation_epochs", type=int, default=5)
    ap.add_argument("--use_ema", action="store_true")
    return ap.parse_args()


def prune_checkpoints(folder, limit):
    names = sorted((d for d in os.listdir(folder) if d.startswith("checkpoint")), key=lambda n: int(n.split("-")[1]))
    for name in names[:max(0, len(names) - limit + 1)]:
        shutil.rmtree(os.path.join(folder, name))


def log_validation(args, vae, text_encoder, tokenizer, unet, accelerator, epoch):
    pipe = StableDiffusionPipeline.from_pretrained(args.base, vae=vae, text_encoder=text_encoder,
                                                   tokenizer=tokenizer, unet=accelerator.unwrap_model(unet),
                                                   safety_checker=None).to(accelerator.device)
    pipe.set_progress_bar_config(disable=True)
    g = torch.Generator(device=accelerator.device).manual_seed(0)
    images = [pipe(p, num_inference_steps=20, generator=g).images[0] for p in args.validation_prompts]
    for tracker in accelerator.trackers:
        if tracker.name == "tensorboard":
            grid = torch.stack([transforms.ToTensor()(im) for im in images])
            tracker.writer.add_images("validation", grid, epoch)
    del pipe
    torch.cuda.empty_cache()


def main():
    args = options()
    accelerator = Accelerator(
        gradient_accumulation_steps=args.accum, mixed_precision="fp16", log_with="tensorboard",
        project_config=ProjectConfiguration(project_dir=args.output_dir, logging_dir=f"{args.output_dir}/logs"),
        kwargs_handlers=[InitProcessGroupKwargs(timeout=timedelta(hours=1))])
    set_seed(1)
    if accelerator.is_main_process:
        os.makedirs(args.output_dir, exist_ok=True)

    scheduler = DDPMScheduler.from_pretrained(args.base, subfolder="scheduler")
    tokenizer = CLIPTokenizer.from_pretrained(args.base, subfolder="tokenizer")
    text_encoder = CLIPTextModel.from_pretrained(args.base, subfolder="text_encoder").requires_grad_(False)
    vae = AutoencoderKL.from_pretrained(args.base, subfolder="vae").requires_grad_(False)
    unet = UNet2DConditionModel.from_pretrained(args.base, subfolder="unet")
    ema = EMAModel(unet.parameters(), model_cls=UNet2DConditionModel, model_config=unet.config) if args.use_ema else None

    def save_hook(models, weights, output_dir):
        if accelerator.is_main_process:
            if ema is not None:
                ema.save_pretrained(os.path.join(output_dir, "unet_ema"))
            for m in models:
                accelerator.unwrap_model(m).save_pretrained(os.path.join(output_dir, "unet"))
                weights.pop()

    def load_hook(models, input_dir):
        if ema is not None:
            ema.load_state_dict(EMAModel.from_pretrained(
                os.path.join(input_dir, "unet_ema"), UNet2DConditionModel).state_dict())
            ema.to(accelerator.device)
        while models:
            m = accelerator.unwrap_model(models.pop())
            m.load_state_dict(UNet2DConditionModel.from_pretrained(input_dir, subfolder="unet").state_dict())

    accelerator.register_save_state_pre_hook(save_hook)
    accelerator.register_load_state_pre_hook(load_hook)

    tf = transforms.Compose([transforms.Resize(args.resolution), transforms.CenterCrop(args.resolution),
                             transforms.ToTensor(), transforms.Normalize([0.5], [0.5])])

    def transform(rows):
        ids = tokenizer(rows["text"], max_length=tokenizer.model_max_length, padding="max_length", truncation=True)
        return {"pixel_values": [tf(im.convert("RGB")) for im in rows["image"]], "input_ids": ids.input_ids}

    with accelerator.main_process_first():
        train_set = load_dataset(args.dataset)["train"].with_transform(transform)
    loader = torch.utils.data.DataLoader(
        train_set, shuffle=True, batch_size=args.batch, num_workers=4,
        collate_fn=lambda ex: {"pixel_values": torch.stack([e["pixel_values"] for e in ex]),
                               "input_ids": torch.tensor([e["input_ids"] for e in ex])})
    optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-5)
    lr_sched = get_scheduler("constant_with_warmup", optimizer=optimizer, num_warmup_steps=500)
    unet, optimizer, loader, lr_sched = accelerator.prepare(unet, optimizer, loader, lr_sched)
    vae.to(accelerator.device)
    text_encoder.to(accelerator.device)
    if ema is not None:
        ema.to(accelerator.device)
    if accelerator.is_main_process:
        accelerator.init_trackers("text2image")

    global_step = 0
    if args.resume:
        choice = [None]
        if accelerator.is_main_process:
            have = [d for d in os.listdir(args.output_dir) if d.startswith("checkpoint")]
            choice[0] = args.resume if args.resume != "latest" else max(
                have, key=lambda n: int(n.split("-")[1]), default=None)
        broadcast_object_list(choice)
        if choice[0] is not None:
            accelerator.load_state(os.path.join(args.output_dir, choice[0]))
            global_step = int(choice[0].split("-")[1])

    bar = tqdm(range(args.max_train_steps), initial=global_step, disable=not accelerator.is_local_main_process)
    for epoch in range(args.num_epochs):
        unet.train()
        for batch in loader:
            with accelerator.accumulate(unet):
                latents = vae.encode(batch["pixel_values"]).latent_dist.sample() * vae.config.scaling_factor
                noise = torch.randn_like(latents)
                t = torch.randint(0, scheduler.config.num_train_timesteps, (latents.shape[0],), device=latents.device)
                states = text_encoder(batch["input_ids"])[0]
                pred = unet(scheduler.add_noise(latents, noise, t), t, states).sample
                loss = F.mse_loss(pred.float(), noise.float())
                shown = accelerator.gather(loss.repeat(args.batch)).mean()
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(unet.parameters(), 1.0)
                optimizer.step()
                lr_sched.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                if ema is not None:
                    ema.step(unet.parameters())
                bar.update(1)
                global_step += 1
                accelerator.log({"train_loss": shown.item()}, step=global_step)
                if global_step % args.checkpointing_steps == 0:
                    if accelerator.is_main_process and args.checkpoints_total_limit is not None:
                        prune_checkpoints(args.output_dir, args.checkpoints_total_limit)
                    accelerator.save_state(os.path.join(args.output_dir, f"checkpoint-{global_step}"))
            if global_step >= args.max_train_steps:
                break
        if accelerator.is_main_process and args.validation_prompts and epoch % args.validation_epochs == 0:
            if ema is not None:
                ema.store(unet.parameters())
                ema.copy_to(unet.parameters())
            log_validation(args, vae, text_encoder, tokenizer, unet, accelerator, epoch)
            if ema is not None:
                ema.restore(unet.parameters())
        if global_step >= args.max_train_steps:
            break

    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        final = accelerator.unwrap_model(unet)
        if ema is not None:
            ema.copy_to(final.parameters())
        StableDiffusionPipeline.from_pretrained(args.base, unet=final).save_pretrained(args.output_dir)
    accelerator.end_training()


if __name__ == "__main__":
    main()
