"""Models: how a model lies in memory, and what it makes of samples.

Here belongs what is trained: softmax regression, and networks when they come. How a model is
trained is the affair of :mod:`bezoar.training`.
"""

from bezoar.models._softmax import SoftmaxRegression

__all__ = ["SoftmaxRegression"]
