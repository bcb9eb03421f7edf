"""Subject-driven LoRA tuning; the prior-preservation images are made by all processes."""
import argparse
import gc
import hashlib
from datetime import timedelta
from pathlib import Path

import torch
import torch.nn.functional as F
from accelerate import Accelerator, InitProcessGroupKwargs
from accelerate.utils import broadcast_object_list
from diffusers import AutoencoderKL, DDPMScheduler, DiffusionPipeline, UNet2DConditionModel
from peft import LoraConfig
from peft.utils import get_peft_model_state_dict
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms
from transformers import AutoTokenizer, CLIPTextModel


class PairDataset(Dataset):
    def __init__(self, instance_dir, class_dir, size):
        self.instance = sorted(Path(instance_dir).glob("*.jpg"))
        self.classes = sorted(Path(class_dir).glob("*.jpg"))
        self.tf = transforms.Compose([transforms.Resize(size), transforms.CenterCrop(size),
                                      transforms.ToTensor(), transforms.Normalize([0.5], [0.5])])

    def __len__(self):
        return max(len(self.instance), len(self.classes))

    def __getitem__(self, i):
        a = Image.open(self.instance[i % len(self.instance)]).convert("RGB")
        b = Image.open(self.classes[i % len(self.classes)]).convert("RGB")
        return self.tf(a), self.tf(b)


def generate_class_images(args, accelerator):
    folder = Path(args.class_dir)
    if accelerator.is_main_process:
        folder.mkdir(parents=True, exist_ok=True)
        have = [len(list(folder.glob("*.jpg")))]
    else:
        have = [None]
    broadcast_object_list(have)
    missing = args.num_class_images - have[0]
    if missing > 0:
        pipe = DiffusionPipeline.from_pretrained(args.base, torch_dtype=torch.float16, safety_checker=None)
        pipe.set_progress_bar_config(disable=True)
        pipe.to(accelerator.device)
        todo = list(range(have[0], args.num_class_images))
        mine = todo[accelerator.process_index::accelerator.num_processes]
        for start in range(0, len(mine), args.sample_batch):
            chunk = mine[start:start + args.sample_batch]
            for index, image in zip(chunk, pipe([args.class_prompt] * len(chunk)).images):
                digest = hashlib.sha1(image.tobytes()).hexdigest()[:12]
                image.save(folder / f"{index:05d}-{digest}.jpg")
        del pipe
        gc.collect()
        torch.cuda.empty_cache()
    accelerator.wait_for_everyone()


def encode_prompt(tokenizer, encoder, prompt, device):
    ids = tokenizer(prompt, padding="max_length", truncation=True, max_length=tokenizer.model_max_length,
                    return_tensors="pt").input_ids.to(device)
    with torch.no_grad():
        return encoder(ids)[0]


def main(args):
    accelerator = Accelerator(mixed_precision="fp16", kwargs_handlers=[InitProcessGroupKwargs(timeout=timedelta(hours=3))])
    generate_class_images(args, accelerator)

    device = accelerator.device
    tokenizer = AutoTokenizer.from_pretrained(args.base, subfolder="tokenizer", use_fast=False)
    encoder = CLIPTextModel.from_pretrained(args.base, subfolder="text_encoder").to(device)
    vae = AutoencoderKL.from_pretrained(args.base, subfolder="vae").to(device).requires_grad_(False)
    noise_sched = DDPMScheduler.from_pretrained(args.base, subfolder="scheduler")
    unet = UNet2DConditionModel.from_pretrained(args.base, subfolder="unet").requires_grad_(False)
    unet.add_adapter(LoraConfig(r=args.rank, lora_alpha=args.rank, target_modules=["to_k", "to_q", "to_v", "to_out.0"]))
    instance_emb = encode_prompt(tokenizer, encoder, args.instance_prompt, device)
    class_emb = encode_prompt(tokenizer, encoder, args.class_prompt, device)
    del encoder

    loader = DataLoader(PairDataset(args.instance_dir, args.class_dir, args.resolution), batch_size=args.batch,
                        shuffle=True, drop_last=True)
    params = [p for p in unet.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(params, lr=args.lr)
    unet, optimizer, loader = accelerator.prepare(unet, optimizer, loader)

    step = 0
    while step < args.max_steps:
        for instance, klass in loader:
            pixels = torch.cat([instance, klass])
            latents = vae.encode(pixels).latent_dist.sample() * vae.config.scaling_factor
            noise = torch.randn_like(latents)
            t = torch.randint(0, noise_sched.config.num_train_timesteps, (latents.shape[0],), device=device)
            states = torch.cat([instance_emb.expand(instance.shape[0], -1, -1),
                                class_emb.expand(klass.shape[0], -1, -1)])
            pred = unet(noise_sched.add_noise(latents, noise, t), t, states).sample
            pred_i, pred_c = pred.float().chunk(2)
            noise_i, noise_c = noise.float().chunk(2)
            loss = F.mse_loss(pred_i, noise_i) + args.prior_weight * F.mse_loss(pred_c, noise_c)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(params, 1.0)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            if accelerator.is_main_process and step % 50 == 0:
                print(f"step {step}: {loss.item():.4f}")
            if step >= args.max_steps:
                break

    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        layers = get_peft_model_state_dict(accelerator.unwrap_model(unet))
        Path(args.output_dir).mkdir(parents=True, exist_ok=True)
        torch.save(layers, Path(args.output_dir) / "lora.pt")
    accelerator.end_training()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    for name in ("base", "instance_dir", "class_dir", "instance_prompt", "class_prompt"):
        ap.add_argument(f"--{name}", required=True)
    ap.add_argument("--output_dir", default="lora")
    for name, default in (("num_class_images", 200), ("sample_batch", 4), ("batch", 1), ("resolution", 512),
                          ("max_steps", 800), ("rank", 8)):
        ap.add_argument(f"--{name}", type=int, default=default)
    ap.add_argument("--lr", type=float, default=1e-4)
    ap.add_argument("--prior_weight", type=float, default=1.0)
    main(ap.parse_args())
