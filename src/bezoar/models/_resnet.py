"""Residual networks for small images."""

import torch
from torch import Tensor, nn

from bezoar._checks import whole
from bezoar._errors import BezoarError
from bezoar.models._checks import check_image
from bezoar.models._initialise import SeededModule

#: Channels that share statistics in group normalisation (Wu and He, 2018, table 3).
GROUP = 16


def resnet18(
    image_shape: tuple[int, ...], classes: int, width: int = 64, norm: str = "batch"
) -> nn.Module:
    """`He et al. <https://arxiv.org/abs/1512.03385>`_'s residual network of 18 layers.

    Its first convolution is 3 × 3 without pooling, as is usual for images of 32 × 32 pixels;
    larger ones are averaged at the end as well.

    Args:
        image_shape: ``(channels, height, width)`` of an image.
        classes: the number of classes.
        width: the channels of the first stage; each of the next three has twice as many.
        norm: ``"batch"`` or ``"group"``, which keeps no statistics: 16 channels a group.
    """
    return ResNet(image_shape, classes, [2, 2, 2, 2], width, norm)


def resnet34(
    image_shape: tuple[int, ...], classes: int, width: int = 64, norm: str = "batch"
) -> nn.Module:
    """`He et al. <https://arxiv.org/abs/1512.03385>`_'s residual network of 34 layers.

    It is otherwise as :func:`resnet18`.
    """
    return ResNet(image_shape, classes, [3, 4, 6, 3], width, norm)


class ResNet(SeededModule):
    """A first convolution, stages of residual blocks, the mean over the image, an output layer.

    Each stage has some ``blocks``, and all but the first halve height and width.
    """

    def __init__(
        self, image_shape: tuple[int, ...], classes: int, blocks: list[int], width: int, norm: str
    ) -> None:
        super().__init__()
        channels, _, _ = check_image(image_shape)
        whole("width", width, 1)
        self.stem = nn.Conv2d(channels, width, 3, padding=1, bias=False)
        self.stem_norm = _norm(norm, width)
        stages: list[nn.Module] = []
        before = width
        for stage, count in enumerate(blocks):
            after = width << stage
            for block in range(count):
                stride = 2 if stage > 0 and block == 0 else 1
                stages.append(Block(before, after, stride, norm))
                before = after
        self.blocks = nn.Sequential(*stages)
        self.output = nn.Linear(before, classes)

    def forward(self, images: Tensor) -> Tensor:
        """``[n, classes]`` scores of ``[n, channels, height, width]`` images."""
        hidden = torch.relu_(self.stem_norm(self.stem(images)))
        hidden = self.blocks(hidden)
        scores: Tensor = self.output(hidden.mean((2, 3)))
        return scores


class Block(nn.Module):
    """Two 3 × 3 convolutions beside a shortcut, which is a 1 × 1 convolution where sizes change."""

    def __init__(self, before: int, after: int, stride: int, norm: str) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, padding=1, bias=False)
        self.norm1 = _norm(norm, after)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.norm2 = _norm(norm, after)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or before != after:
            conv = nn.Conv2d(before, after, 1, stride, bias=False)
            self.shortcut = nn.Sequential(conv, _norm(norm, after))

    def forward(self, inputs: Tensor) -> Tensor:
        """``[n, after, height / stride, width / stride]`` of ``[n, before, height, width]``."""
        # In place, because normalisations do not need their outputs again: less memory to touch.
        hidden = torch.relu_(self.norm1(self.conv1(inputs)))
        return torch.relu_(self.norm2(self.conv2(hidden)).add_(self.shortcut(inputs)))


def _norm(norm: str, channels: int) -> nn.Module:
    if norm == "batch":
        return nn.BatchNorm2d(channels)
    if norm == "group":
        groups = max(channels // GROUP, 1)
        while channels % groups:
            groups -= 1
        return nn.GroupNorm(groups, channels)
    raise BezoarError(f"norm: {norm!r} is not known; allowed: batch, group")
