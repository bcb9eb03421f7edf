from accelerate import Accelerator
from accelerate.utils import broadcast_object_list
from datasets import load_dataset
from transformers import AutoTokenizer


class Corpus:
    def __init__(self, accelerator: Accelerator, name: str, tokenizer: str):
        self.accelerator = accelerator
        self.name = name
        self.tokenizer = AutoTokenizer.from_pretrained(tokenizer)

    def _longest(self, column) -> int:
        box = [max(len(text) for text in column) if self.accelerator.is_main_process else None]
        broadcast_object_list(box, from_process=0)
        return min(box[0], 2048)

    def _encode(self, rows, length):
        return self.tokenizer(rows["text"], truncation=True, max_length=length)

    def load(self):
        with self.accelerator.main_process_first():
            raw = load_dataset(self.name, split="train")
            length = self._longest(raw["text"])
            return raw.map(self._encode, batched=True, fn_kwargs={"length": length})


def main():
    accelerator = Accelerator()
    data = Corpus(accelerator, "ag_news", "bert-base-uncased").load()
    accelerator.print(len(data), "rows")


if __name__ == "__main__":
    main()
