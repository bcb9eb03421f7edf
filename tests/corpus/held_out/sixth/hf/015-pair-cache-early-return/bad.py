import json
from pathlib import Path

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from transformers import AutoModel, AutoTokenizer


class CachedPairs(Dataset):
    def __init__(self, path: Path):
        self.data = torch.load(path)

    def __len__(self):
        return len(self.data["query"])

    def __getitem__(self, i):
        return self.data["query"][i], self.data["passage"][i]


class PairStore:
    def __init__(self, fabric: L.Fabric, root: str, tokenizer, max_length: int = 256):
        self.fabric, self.root = fabric, Path(root)
        self.tokenizer, self.max_length = tokenizer, max_length

    def _encode(self, texts):
        return self.tokenizer(texts, padding="max_length", truncation=True,
                              max_length=self.max_length, return_tensors="pt")["input_ids"]

    def build(self, split: str) -> CachedPairs:
        cache = self.root / f"{split}.pairs.pt"
        if self.fabric.global_rank == 0:
            if not cache.exists():
                with open(self.root / f"{split}.jsonl") as f:
                    rows = [json.loads(line) for line in f]
                torch.save({"query": self._encode([r["query"] for r in rows]),
                            "passage": self._encode([r["positive"] for r in rows])}, cache)
            return CachedPairs(cache)
        self.fabric.barrier("pairs")
        return CachedPairs(cache)


def main():
    fabric = L.Fabric(accelerator="cuda", devices=4, strategy="ddp", precision="bf16-mixed")
    fabric.launch()
    tokenizer = AutoTokenizer.from_pretrained("intfloat/e5-base")
    store = PairStore(fabric, "data/retrieval", tokenizer)
    loader = fabric.setup_dataloaders(DataLoader(store.build("train"), batch_size=64, shuffle=True, drop_last=True))
    encoder = AutoModel.from_pretrained("intfloat/e5-base")
    model, optimizer = fabric.setup(encoder, torch.optim.AdamW(encoder.parameters(), lr=2e-5))
    for epoch in range(2):
        for i, (query, passage) in enumerate(loader):
            both = model(torch.cat([query, passage])).last_hidden_state[:, 0]
            q, p = nn.functional.normalize(both, dim=-1).chunk(2)
            loss = nn.functional.cross_entropy(q @ p.T / 0.02, torch.arange(len(q), device=q.device))
            fabric.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            if i % 100 == 0:
                fabric.print(f"epoch {epoch} batch {i} loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
