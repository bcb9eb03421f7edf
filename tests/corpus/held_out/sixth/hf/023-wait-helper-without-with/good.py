import contextlib
import logging
import os
import shutil
import time
from pathlib import Path
from typing import Iterator

import torch
import torch.distributed as torch_dist

from objstore import make_object_store

log = logging.getLogger(__name__)


def get_local_rank() -> int:
    return int(os.environ["LOCAL_RANK"])


@contextlib.contextmanager
def local_rank_zero_download_and_wait(expected: Path) -> Iterator[None]:
    """Polls the disk, without a collective, until local rank zero has got the file."""
    if get_local_rank() != 0:
        while not expected.exists():
            time.sleep(0.5)
    yield


def download_checkpoint(uri: str, node_folder: Path) -> Path:
    target = node_folder / "rank0_checkpoint.pt"
    signal_file = node_folder / f".{os.environ.get('TORCHELASTIC_RUN_ID', 'run')}_local_rank0_completed"
    if get_local_rank() == 0:
        node_folder.mkdir(parents=True, exist_ok=True)
        store, key = make_object_store(uri)
        partial = target.with_suffix(".part")
        store.download_object(key, str(partial))
        shutil.move(partial, target)
        signal_file.write_bytes(b"local_rank0_completed")
        log.info("fetched %s", uri)

    with local_rank_zero_download_and_wait(signal_file):
        torch_dist.barrier()

    if get_local_rank() == 0:
        signal_file.unlink()
    return target


def load_checkpoint(model, optimizer, uri: str, folder: str = "/tmp/composer_ckpt") -> int:
    path = download_checkpoint(uri, Path(folder))
    payload = torch.load(path, map_location="cpu")
    model.load_state_dict(payload["state"]["model"])
    optimizer.load_state_dict(payload["state"]["optimizers"])
    torch_dist.barrier()
    if get_local_rank() == 0:
        path.unlink()
    return payload["state"]["batch"]
