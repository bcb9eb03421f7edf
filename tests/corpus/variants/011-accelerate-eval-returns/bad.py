import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset


def evaluate(accelerator: Accelerator, model: torch.nn.Module, loader: DataLoader) -> float:
    if not accelerator.is_main_process:
        return float("nan")
    scores = []
    model.eval()
    for features, labels in loader:
        with torch.no_grad():
            guess = model(features).argmax(dim=-1)
        scores.append(accelerator.gather_for_metrics((guess == labels).float()))
    return torch.cat(scores).mean().item()


def main() -> None:
    accelerator = Accelerator()
    model = torch.nn.Linear(8, 3)
    data = TensorDataset(torch.randn(64, 8), torch.randint(0, 3, (64,)))
    model, loader = accelerator.prepare(model, DataLoader(data, batch_size=8))
    accuracy = evaluate(accelerator, model, loader)
    accelerator.print(f"accuracy {accuracy:.3f}")
    accelerator.end_training()


if __name__ == "__main__":
    main()
