import os
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list
from huggingface_hub import HfApi


def main(model, opt, loader, args):
    accelerator = Accelerator()
    api = HfApi()
    repo_id, problem = None, [None]
    if accelerator.is_main_process:
        try:
            os.makedirs(args.output_dir, exist_ok=True)
            if args.push_to_hub:
                repo_id = api.create_repo(args.hub_model_id, exist_ok=True, token=args.token).repo_id
                with open(os.path.join(args.output_dir, ".gitignore"), "w") as fh:
                    fh.write("step_*\nepoch_*\n")
        except Exception as err:
            problem[0] = f"{type(err).__name__}: {err}"
    broadcast_object_list(problem, from_process=0)
    if problem[0] is not None:
        raise RuntimeError(f"main process could not prepare the run: {problem[0]}")

    model, opt, loader = accelerator.prepare(model, opt, loader)
    for batch in loader:
        accelerator.backward(model(**batch).loss)
        opt.step()
        opt.zero_grad()

    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        accelerator.unwrap_model(model).save_pretrained(args.output_dir)
        if repo_id is not None:
            api.upload_folder(folder_path=args.output_dir, repo_id=repo_id, token=args.token)
