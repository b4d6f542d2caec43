"""Step sizes."""

import numpy as np
import pytest

from bezoar import BezoarError
from bezoar.training import Inverse, Milestones, OneCycle


@pytest.mark.parametrize("decay", ["cosine", "linear"])
@pytest.mark.parametrize(("warm_up", "iterations"), [(0, 7), (0.2, 50), (0.5, 10), (1, 9)])
def test_one_cycle_goes_up_and_down(decay, warm_up, iterations):
    schedule = OneCycle(0.3, warm_up=warm_up, decay=decay)
    steps = [schedule(k, iterations) for k in range(1, iterations + 1)]
    top = int(np.argmax(steps))
    assert steps[top] <= 0.3
    assert (np.diff(steps[: top + 1]) > 0).all()
    assert (np.diff(steps[top:]) < 0).all()
    assert min(steps) > 0
    assert top + 1 == pytest.approx(max(1, warm_up * iterations), abs=1)
    if warm_up == 0.2:
        assert steps[top] == 0.3
        assert steps[-1] < 0.03
        bends = np.abs(np.diff(steps[top:], 2)).max()
        assert (bends < 1e-12) == (decay == "linear")


def test_inverse_and_milestones():
    assert [Inverse(0.6)(k, 9) for k in (1, 2, 3)] == pytest.approx([0.6, 0.3, 0.2])
    steps = [Milestones(0.5, (2, 4), 0.1)(k, 6) for k in range(1, 7)]
    assert steps == pytest.approx([0.5, 0.5, 0.05, 0.05, 0.005, 0.005])
    assert Milestones(0.5)(100, 100) == 0.5
    with pytest.raises(BezoarError, match=r"milestones: expected ascending iterations, found \[4"):
        Milestones(0.5, (4, 2))
