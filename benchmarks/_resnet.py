"""A ResNet18 for small images, of any width."""

import torch
from torch import Tensor, nn


class _Block(nn.Module):
    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inner, outer, 3, stride, padding=1, bias=False)
        self.after_first = nn.BatchNorm2d(outer)
        self.second = nn.Conv2d(outer, outer, 3, padding=1, bias=False)
        self.after_second = nn.BatchNorm2d(outer)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inner != outer:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer)
            )

    def forward(self, inputs: Tensor) -> Tensor:
        values = torch.relu(self.after_first(self.first(inputs)))
        return torch.relu(self.after_second(self.second(values)) + self.shortcut(inputs))


class ResNet18(nn.Module):
    """ResNet18 with a 3 × 3 stem; inputs are images ``[n, 3, 32, 32]`` or the same flattened."""

    def __init__(self, width: int, classes: int = 100) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.after_stem = nn.BatchNorm2d(width)
        widths = [width, width, width, 2 * width, 2 * width, 4 * width, 4 * width, 8 * width]
        blocks = [
            _Block(inner, outer, 1 if inner == outer else 2)
            for inner, outer in zip(widths, [*widths[1:], 8 * width], strict=True)
        ]
        self.blocks = nn.Sequential(*blocks)
        self.output = nn.Linear(8 * width, classes)

    def forward(self, inputs: Tensor) -> Tensor:
        images = inputs.unflatten(1, (3, 32, 32)) if inputs.ndim == 2 else inputs
        values: Tensor = self.output(
            self.blocks(torch.relu(self.after_stem(self.stem(images)))).mean((2, 3))
        )
        return values
