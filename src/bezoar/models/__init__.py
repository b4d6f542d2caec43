"""Models that agents train."""

from bezoar.models._softmax import SoftmaxRegression

__all__ = ["SoftmaxRegression"]
