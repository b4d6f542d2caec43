"""Softmax regression: how a model lies in memory."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

#: Matrix products are several times faster when their long dimensions are multiples of this.
ALIGNMENT = 16


@dataclass(frozen=True)
class SoftmaxRegression:
    """Multinomial logistic regression with a bias.

    In training a model is a matrix ``[classes, width]``: a row holds a class's weights, then its
    bias, then zeros up to the next multiple of 16. Samples are laid out the same way with a one
    in the bias column and zeros after it, so the padding stays zero. To the outside a model is
    one vector: the weights class by class, then the biases.

    Attributes:
        classes: the number of classes.
        features: the number of features of a sample.
    """

    classes: int
    features: int

    @property
    def width(self) -> int:
        """The padded length of a row."""
        return -(-(self.features + 1) // ALIGNMENT) * ALIGNMENT

    @property
    def parameters(self) -> int:
        """The number of parameters, ``D``."""
        return self.classes * (self.features + 1)

    def design(self, samples: NDArray[np.generic], dtype: torch.dtype) -> Tensor:
        """``[n, width]`` samples with bias column and padding; uint8 pixels scaled to [−1, 1].

        Samples are ``[n, features]`` or have several dimensions, which are flattened.
        """
        design = torch.zeros(len(samples), self.width, dtype=dtype)
        values = design[:, : self.features]
        values.numpy()[:] = samples.reshape(len(samples), -1)
        if samples.dtype == np.uint8:
            values.mul_(2 / 255).sub_(1)
        design[:, self.features] = 1
        return design

    def flatten(self, models: Tensor) -> Tensor:
        """``[..., classes, width]`` in memory as vectors ``[..., D]``."""
        weights, biases = models[..., : self.features], models[..., self.features]
        return torch.cat([weights.flatten(-2), biases], dim=-1)

    def unflatten(self, vectors: Tensor) -> Tensor:
        """Vectors ``[..., D]`` as ``[..., classes, width]`` in memory."""
        weights, biases = vectors.split([self.classes * self.features, self.classes], -1)
        models = vectors.new_zeros(*vectors.shape[:-1], self.classes, self.width)
        models[..., : self.features] = weights.unflatten(-1, (self.classes, self.features))
        models[..., self.features] = biases
        return models
