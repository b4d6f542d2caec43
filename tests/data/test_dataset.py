import numpy as np
import pytest

from bezoar import BezoarError
from bezoar.data import Dataset


def made(**changes):
    parts = {
        "name": "mine",
        "train": np.zeros((4, 3), dtype=np.float32),
        "train_labels": np.array([0, 1, 0, 1]),
        "test": np.zeros((2, 3), dtype=np.float32),
        "test_labels": np.array([0, 1]),
        "classes": 2,
    }
    return Dataset(**(parts | changes))


def test_a_dataset_of_ones_own():
    assert made().features == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train": np.zeros(4)}, r"train: expected samples of shape \[n, features\]"),
        ({"train": np.zeros((4, 3), dtype=int)}, "train: expected uint8 or floating point"),
        ({"train_labels": np.array([0, 1])}, "train_labels: expected 4 labels"),
        ({"train_labels": np.array([0, 1, 0, 2])}, "train_labels: expected 0 … 1, found 0 … 2"),
        ({"test_labels": np.array([-1, 1])}, "test_labels: expected 0 … 1, found -1 … 1"),
        ({"test_labels": np.array([0.0, 1.0])}, "test_labels: expected integers"),
        ({"test": np.zeros((2, 5))}, "test: expected 3 features as in train, found 5"),
    ],
)
def test_what_does_not_fit_is_refused(changes, message):
    with pytest.raises(BezoarError, match=message):
        made(**changes)
