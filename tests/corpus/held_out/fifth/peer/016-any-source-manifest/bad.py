import logging

import torch
import torch.distributed as dist

log = logging.getLogger("collector")
WIDTH = 4


def worker(rank):
    if rank == 1:
        dist.send(torch.tensor([7.0, 1.0, 0.0, 0.0]), dst=0)
    score = torch.rand(WIDTH)
    dist.send(score, dst=0)
    return score


def collector(world):
    manifest = torch.empty(WIDTH)
    dist.recv(manifest)
    version = int(manifest[0])
    log.info("protocol version %d", version)
    board = {}
    for peer in range(1, world):
        row = torch.empty(WIDTH)
        dist.recv(row, src=peer)
        board[peer] = row.mean().item()
    return board


def main():
    logging.basicConfig(level=logging.INFO)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        board = collector(world)
        best = max(board, key=board.get)
        choice = torch.tensor([best])
    else:
        worker(rank)
        choice = torch.zeros(1, dtype=torch.long)
    dist.broadcast(choice, src=0)
    log.info("rank %d: winner is %d", rank, int(choice))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
