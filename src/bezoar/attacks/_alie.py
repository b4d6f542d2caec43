"""A little is enough: as far from the mean as passes unnoticed."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Annotated, ClassVar, Literal

from pydantic import Field
from torch import Tensor

from bezoar.attacks._regular_inputs import AttackOnInputs, RegularInputs, mean_and_deviation


@dataclass(frozen=True)
class ALIE(AttackOnInputs):
    """`A little is enough <https://arxiv.org/abs/1902.06156>`_: ``μ_w − z σ_w``.

    ``μ_w`` and ``σ_w`` are mean and standard deviation of the regular messages that the receiver
    hears, coordinate by coordinate.

    Args:
        z: how many deviations; or ``"hidden"``: so many that, were coordinates normal, a majority
            of the ``n`` inputs would be no nearer to the mean. With ``P`` poisoned inputs and
            ``s = ⌊n/2 + 1⌋ − P``, that is ``Φ⁻¹((n − P − s) / (n − P))``.
    """

    z: Annotated[float, Field(allow_inf_nan=False)] | Literal["hidden"] = "hidden"

    name: ClassVar[str] = "alie"

    def message(self, heard: RegularInputs) -> Tensor:
        mean, deviation = mean_and_deviation(heard.messages)
        z = hidden_deviations(heard.inputs, heard.poisoned) if self.z == "hidden" else self.z
        return mean - z * deviation


def hidden_deviations(inputs: int, poisoned: int) -> float:
    """How many deviations from the mean poisoned inputs can go and not stand out."""
    supporters = inputs // 2 + 1 - poisoned
    regular = inputs - poisoned
    share = (regular - supporters) / regular if regular else 0.5
    # Where poisoned inputs are a majority themselves, or nobody is left, there is no such number.
    nearest = 1 / (2 * inputs)
    return NormalDist().inv_cdf(min(max(share, nearest), 1 - nearest))
