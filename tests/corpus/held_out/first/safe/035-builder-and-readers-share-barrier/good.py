import os
import pickle
import tempfile

import torch.distributed as dist


def build_index(path, docs):
    index = {}
    for i, doc in enumerate(docs):
        for word in doc.split():
            index.setdefault(word, []).append(i)
    with open(path, "wb") as f:
        pickle.dump(index, f)
    dist.barrier()
    return index


def read_index(path):
    dist.barrier()
    with open(path, "rb") as f:
        return pickle.load(f)


def load(path, docs):
    if dist.get_rank() == 0:
        return build_index(path, docs)
    return read_index(path)


def main():
    dist.init_process_group("gloo")
    where = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(where, src=0)
    index = load(os.path.join(where[0], "index.pkl"), ["red fox", "red hen"])
    assert index["red"] == [0, 1]
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
