import warnings
from dataclasses import dataclass

import pytest

from bezoar import BezoarError
from bezoar._options import Part, plain_options, read_options


def test_options_may_be_called_like_methods_of_pydantic():
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        @dataclass(frozen=True)
        class Odd(Part):
            copy: int = 1
            json: bool = False
            schema: str = "wide"
            dict: tuple[int, ...] = ()
            validate: float | None = None

        part = Odd(copy=2, json=True, dict=(3, 4), validate=0.5)
        read = read_options(Odd, {"copy": "2", "json": "yes", "dict": "3 4"}, as_text=True)
    assert part == Odd(**read | {"validate": 0.5})
    assert plain_options(Odd, vars(part)) == {
        "copy": 2,
        "json": True,
        "schema": "wide",
        "dict": [3, 4],
        "validate": 0.5,
    }


def test_a_number_of_too_many_digits():
    def make(count: int = 1) -> None: ...

    with pytest.raises(BezoarError, match="count: expected an integer of fewer digits, found '99"):
        read_options(make, {"count": "9" * 5000}, as_text=True)
