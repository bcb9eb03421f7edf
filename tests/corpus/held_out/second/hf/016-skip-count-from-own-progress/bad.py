import json
from pathlib import Path

from accelerate import Accelerator


class Progress:
    def __init__(self, accelerator, folder):
        self.file = Path(folder) / f"progress-{accelerator.process_index}.json"

    def read(self) -> int:
        return json.loads(self.file.read_text())["batch"] if self.file.exists() else 0

    def write(self, batch: int) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps({"batch": batch}))


def resume_epoch(model, optimizer, loader, folder):
    accelerator = Accelerator()
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    progress = Progress(accelerator, folder)
    begin = progress.read()
    if begin:
        accelerator.load_state(f"{folder}/state")
    rest = accelerator.skip_first_batches(loader, begin)
    for number, batch in enumerate(rest, start=begin):
        loss = model(**batch).loss
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        progress.write(number + 1)
        if (number + 1) % 500 == 0:
            accelerator.save_state(f"{folder}/state")
