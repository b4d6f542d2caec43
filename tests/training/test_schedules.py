"""Step sizes."""

import numpy as np
import pytest

from bezoar.training import OneCycle


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
