"""Small networks: the two that federated averaging was introduced with."""

from itertools import pairwise
from math import prod

import torch
from torch import Tensor, nn

from bezoar._checks import whole
from bezoar.models._checks import check_image
from bezoar.models._initialise import SeededModule


class CNN(SeededModule):
    """`McMahan et al. <https://arxiv.org/abs/1602.05629>`_'s convolutional network.

    Two 5 × 5 convolutions, each followed by 2 × 2 max-pooling, then a fully connected layer.

    Args:
        image_shape: ``(channels, height, width)`` of an image.
        classes: the number of classes.
        width: the channels of the first convolution; the second has twice as many.
        hidden: the neurons of the fully connected layer.
    """

    def __init__(
        self, image_shape: tuple[int, ...], classes: int, width: int = 32, hidden: int = 512
    ) -> None:
        super().__init__()
        channels, height, width_px = check_image(image_shape, least=4)
        whole("width", width, 1)
        whole("hidden", hidden, 1)
        self.conv1 = nn.Conv2d(channels, width, 5, padding=2)
        self.conv2 = nn.Conv2d(width, 2 * width, 5, padding=2)
        self.hidden = nn.Linear(2 * width * (height // 4) * (width_px // 4), hidden)
        self.output = nn.Linear(hidden, classes)

    def forward(self, images: Tensor) -> Tensor:
        """``[n, classes]`` scores of ``[n, channels, height, width]`` images."""
        pooled = torch.max_pool2d(torch.relu(self.conv1(images)), 2)
        pooled = torch.max_pool2d(torch.relu(self.conv2(pooled)), 2)
        scores: Tensor = self.output(torch.relu(self.hidden(pooled.flatten(1))))
        return scores


class MLP(SeededModule):
    """`McMahan et al. <https://arxiv.org/abs/1602.05629>`_'s fully connected network.

    Args:
        image_shape: the shape of a sample, which is flattened.
        classes: the number of classes.
        width: the neurons of a hidden layer.
        depth: the number of hidden layers.
    """

    def __init__(
        self, image_shape: tuple[int, ...], classes: int, width: int = 200, depth: int = 2
    ) -> None:
        super().__init__()
        whole("width", width, 1)
        whole("depth", depth, 0)
        sizes = [prod(image_shape), *[width] * depth]
        self.hidden = nn.ModuleList(nn.Linear(before, after) for before, after in pairwise(sizes))
        self.output = nn.Linear(sizes[-1], classes)

    def forward(self, samples: Tensor) -> Tensor:
        """``[n, classes]`` scores of ``[n, …]`` samples."""
        values = samples.flatten(1)
        for layer in self.hidden:
            values = torch.relu(layer(values))
        scores: Tensor = self.output(values)
        return scores
