import os
import deepspeed
import torch
import torch.distributed as dist
from huggingface_hub import snapshot_download
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer


def model_folder(name, revision="main"):
    if int(os.getenv("RANK", "0")) == 0:
        snapshot_download(name, revision=revision, ignore_patterns=["*.h5", "*.msgpack"])
    dist.barrier()
    return snapshot_download(name, revision=revision, local_files_only=True)


def main(name, prompts):
    deepspeed.init_distributed("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    folder = model_folder(name)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with deepspeed.OnDevice(dtype=torch.float16, device="meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder))
    model = deepspeed.init_inference(
        model.eval(),
        tensor_parallel={"tp_size": dist.get_world_size()},
        dtype=torch.float16,
        checkpoint=os.path.join(folder, "checkpoints.json"),
    )
    for text in prompts:
        ids = tokenizer(text, return_tensors="pt").input_ids.cuda(local)
        out = model.generate(ids, max_new_tokens=100, do_sample=False)
        if dist.get_rank() == 0:
            print(tokenizer.decode(out[0], skip_special_tokens=True))
