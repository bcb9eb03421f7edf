import os
from typing import List, Optional

import requests
import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list, gather_object


class ServerSampler:
    def __init__(self, accelerator: Accelerator, url: str, n: int, retries: int = 3):
        self.acc, self.url, self.n, self.retries = accelerator, url, n, retries

    def _request(self, prompts, images) -> list:
        last = None
        for _ in range(self.retries):
            try:
                r = requests.post(f"{self.url}/generate", timeout=600,
                                  json={"prompts": prompts, "images": images, "n": self.n})
                r.raise_for_status()
                return r.json()["completion_ids"]
            except requests.RequestException as err:
                last = err
        raise RuntimeError(f"generation server failed {self.retries} times: {last}")

    def __call__(self, prompts: List[str], images: Optional[List[str]] = None) -> List[List[int]]:
        all_prompts = gather_object(prompts)
        # images may be there on some ranks only: gather anyway
        all_images = gather_object(images if images is not None else [None] * len(prompts))
        if all(i is None for i in all_images):
            all_images = None

        payload = [None, None]
        if self.acc.is_main_process:
            try:
                payload[0] = self._request(all_prompts[:: self.n], all_images[:: self.n] if all_images else None)
                if len(payload[0]) != len(all_prompts):
                    raise ValueError(f"{len(payload[0])} completions for {len(all_prompts)} prompts")
            except Exception as err:
                payload[1] = str(err)
        broadcast_object_list(payload, from_process=0)
        completions, error = payload
        if error is not None:
            raise RuntimeError(error)
        start = self.acc.process_index * len(prompts)
        return completions[start:start + len(prompts)]


def main():
    acc = Accelerator()
    policy = torch.nn.Embedding(50_000, 64)
    opt = torch.optim.AdamW(policy.parameters(), lr=1e-5)
    policy, opt = acc.prepare(policy, opt)
    sampler = ServerSampler(acc, os.environ["SERVER"], n=4)
    for step in range(100):
        prompts = [f"question {step}-{acc.process_index}-{i}" for i in range(2) for _ in range(4)]
        images = ["img.png"] * len(prompts) if acc.process_index % 2 else None
        ids = [c[:128] + [0] * (128 - len(c[:128])) for c in sampler(prompts, images)]
        out = policy(torch.tensor(ids, device=acc.device))
        acc.backward(out.square().mean())
        opt.step()
        opt.zero_grad()
        length = acc.gather(torch.tensor([float(sum(map(bool, i))) for i in ids], device=acc.device)).mean()
        acc.print(step, length.item())
    acc.end_training()


if __name__ == "__main__":
    main()
