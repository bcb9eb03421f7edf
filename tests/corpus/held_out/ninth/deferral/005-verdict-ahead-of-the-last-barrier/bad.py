from datetime import timedelta

import torch
import torch.distributed as dist
import spmdguard as sg


@sg.rank_local(only="main")
def archive(step: int, field: torch.Tensor) -> None:
    torch.save(field, f"field-{step:05d}.pt")


class Simulation:
    def __init__(self, cells: int):
        self.field = torch.linspace(0, 1, cells)

    def advance(self) -> None:
        flux = self.field.diff(append=self.field[-1:])
        dist.all_reduce(flux)
        self.field = self.field + 0.05 * flux / dist.get_world_size()

    def run(self, steps: int) -> None:
        for step in range(steps):
            self.advance()
            archive(step, self.field)
            if sg.sync_should_stop(sg.has_deferred_error()):
                break


def finish() -> None:
    sg.raise_if_deferred_error()
    dist.barrier()
    dist.destroy_process_group()


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=50))
    simulation = Simulation(cells=16)
    simulation.run(steps=10)
    finish()
    print(simulation.field.mean().item())


if __name__ == "__main__":
    main()
