"""An agent's samples in the features in which they differ."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bezoar.models import SoftmaxRegression


class VaryingFeatures:
    """The samples of one agent, without the features that are the same in all of them.

    A constant feature, such as a pixel at the margin of an image, adds the same to the score of
    every sample, as the bias does, and the gradient of its weight is that of the bias times its
    value. So products go over the other features alone: some 580 of MNIST's 784 pixels where all
    images of an agent show the same digit.

    Models ``[..., width]`` and gradients are laid out as by :class:`SoftmaxRegression`. Those of
    the samples here have the features that differ, then a bias that stands for all others, then
    zeros.

    Attributes:
        samples: ``[n, narrow]`` the samples, with ones for the bias.
    """

    def __init__(
        self,
        model: SoftmaxRegression,
        samples: NDArray[np.generic],
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        design = model.design(samples, dtype)
        differs = (design != design[:1]).any(0)
        differing = differs.nonzero().squeeze(1)
        inner = SoftmaxRegression(model.classes, len(differing))
        self._narrow = inner.width < model.width
        if self._narrow:
            constant = torch.where(differs, 0, design[0])
            narrow = torch.zeros(len(design), inner.width, dtype=dtype)
            narrow[:, : inner.features] = design[:, differing]
            narrow[:, inner.features] = 1
            # Where the gradient of every weight is found, and what it is multiplied by.
            source = torch.full((model.width,), inner.features)
            source[differing] = torch.arange(inner.features)
            factor = torch.where(differs, 1, constant)
            self._differing, self._constant = differing.to(device), constant.to(device)
            self._source, self._factor = source.to(device), factor.to(device)
            design = narrow
        self.samples = design.to(device)

    def narrow(self, models: Tensor) -> Tensor:
        """``[..., narrow]`` models ``[..., width]`` that give the same scores to the samples here.

        It is linear, so gradients that score samples as models do may be given, too.
        """
        if not self._narrow:
            return models
        features = len(self._differing)
        found = models.new_zeros(*models.shape[:-1], self.samples.shape[1])
        found[..., :features] = models.index_select(-1, self._differing)
        found[..., features] = models @ self._constant
        return found

    def widen(self, gradients: Tensor) -> Tensor:
        """``[..., width]`` the gradients of models, from those of models that were narrowed."""
        if not self._narrow:
            return gradients
        return gradients.index_select(-1, self._source).mul_(self._factor)
