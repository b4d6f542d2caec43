import math
from fractions import Fraction

import numpy as np
import pytest

from bezoar import BezoarError
from bezoar._checks import non_negative, positive, share, whole


@pytest.mark.parametrize("check", [non_negative, positive, share])
@pytest.mark.parametrize(
    "found", [0.5, np.float64(0.5), np.float32(0.5), np.float16(0.5), Fraction(1, 2)]
)
def test_numbers_of_every_kind_become_floats(check, found):
    value = check("field", found)
    assert type(value) is float
    assert value == 0.5


def test_numbers_too_large_for_a_float_are_infinite():
    assert non_negative("field", 10**400) == positive("field", 10**400) == math.inf
    with pytest.raises(BezoarError, match="field: expected a number from 0 to 1, found 1000"):
        share("field", 10**400)


@pytest.mark.parametrize(
    ("check", "wrong", "allowed"),
    [
        (non_negative, [-1, -(10**400)], "a number of at least 0"),
        (positive, [-1, 0, -0.0, np.float32(0)], "a number above 0"),
        (share, [-1, 1.5, math.inf], "a number from 0 to 1"),
    ],
)
def test_errors_say_what_is_allowed(check, wrong, allowed):
    for found in [*wrong, math.nan, np.float32("nan"), True, np.True_, "1", None, 1j]:
        with pytest.raises(BezoarError, match=f"field: expected {allowed}, found "):
            check("field", found)


def test_integers_of_every_kind_become_python_s():
    assert type(whole("field", np.int16(3), 1)) is int
    for found in [0, 7, 3.0, True, "3"]:
        with pytest.raises(BezoarError, match="field: expected an integer from 1 to 6, found "):
            whole("field", found, 1, 6)
