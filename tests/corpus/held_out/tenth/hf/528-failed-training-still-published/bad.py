import json
import logging
import os
from accelerate import Accelerator
from huggingface_hub import HfApi

log = logging.getLogger(__name__)


def fit(accelerator, model, opt, loader, epochs):
    for epoch in range(epochs):
        for batch in loader:
            loss = model(**batch).loss
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            opt.zero_grad()
        accelerator.print(f"epoch {epoch} ended")


def publish(folder, repo):
    HfApi().upload_folder(folder_path=folder, repo_id=repo)
    with open(os.path.join(folder, "status.json"), "w") as fh:
        json.dump({"state": "done"}, fh)


def main(model, opt, loader, folder, repo, epochs=3):
    accelerator = Accelerator()
    model, opt, loader = accelerator.prepare(model, opt, loader)
    try:
        fit(accelerator, model, opt, loader, epochs)
    except Exception:
        log.exception("training stopped early")
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        accelerator.unwrap_model(model).save_pretrained(folder)
        publish(folder, repo)
    accelerator.end_training()
