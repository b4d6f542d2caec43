"""How well a rule approximates a combination of its regular inputs (Definition 1, Table I)."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bezoar._errors import BezoarError
from bezoar.networks import Network
from bezoar.theory._checks import non_negative
from bezoar.theory._virtual import MATRIX_OF, virtual_mixing

Floats = NDArray[np.float64]

#: Values of differences held at a time when distances over edges are taken.
CHUNK = 1 << 21


@dataclass(frozen=True)
class ContractionOrder:
    """A row of Table I: an order of ``ρ``, without constants.

    Attributes:
        aggregator: the rule's name.
        order: the formula in ``δ = δ_max``.
        value: the formula's value; infinite where its denominator is not positive.
        matrix: the kind of virtual mixing matrix, ``"uniform"`` or ``"mixing"``.
    """

    aggregator: str
    order: str
    value: float
    matrix: str


_TABLE_1: dict[str, tuple[str, Callable[[float], float]]] = {
    "trimmed_mean": ("O(δ/(1−2δ))", lambda d: _ratio(d, 1 - 2 * d)),
    "faba": ("O(δ/(1−3δ))", lambda d: _ratio(d, 1 - 3 * d)),
    "centered_clipping": ("O(√δ)", sqrt),
    "clipped_gossip": ("O(√(δ(1−δ)))", lambda d: sqrt(d * (1 - d))),
    "ios": ("O(δ/(1−3δ))", lambda d: _ratio(d, 1 - 3 * d)),
}


def _ratio(above: float, below: float) -> float:
    return above / below if below > 0 else inf


def contraction_orders(delta_max: float) -> tuple[ContractionOrder, ...]:
    """Table I: the orders of the contraction constant ``ρ`` of the paper's rules.

    These are orders: compare them with each other or over ``δ_max``, not with the condition
    ``ρ < (1−λ)/4``. For that, measure ρ with :func:`measured_contraction`.

    Args:
        delta_max: the local contamination rate.
    """
    if non_negative("delta_max", delta_max) > 1:
        raise BezoarError(f"delta_max: expected a number from 0 to 1, found {delta_max!r}")
    return tuple(
        ContractionOrder(rule, order, formula(delta_max), MATRIX_OF[rule])
        for rule, (order, formula) in _TABLE_1.items()
    )


@dataclass(frozen=True, eq=False)
class MeasuredContraction:
    """What one exchange needed of ``ρ`` for Definition 1 to hold.

    Attributes:
        rho: the largest ratio.
        agent: the regular agent, the lowest, where it was found.
        ratios: ``[..., R]`` the ratio at every regular agent.
    """

    rho: float
    agent: int
    ratios: Floats

    def holds(self, rho: float) -> bool:
        """Whether this exchange satisfied Definition 1 with the given ``ρ``."""
        return self.rho <= rho


def measured_contraction(
    messages: ArrayLike,
    outputs: ArrayLike,
    network: Network,
    kind: str,
    *,
    mixing: str = "metropolis",
    rounding: float | None = None,
) -> MeasuredContraction:
    """The ``ρ`` of Definition 1 that one exchange shows.

    The largest over regular agents of ``‖agg_w − ȳ_w‖ / max_{v ∈ R̄_w} ‖y_v − ȳ_w‖`` with
    ``ȳ_w = Σ_v M_wv y_v``. It bounds the rule's constant from below: another exchange may need
    more. What rounding explains is taken off the numerator first, so that a rule which returns
    ``ȳ_w`` up to the last digit is not charged for it. Then 0/0 is 0, since the definition holds
    with any ρ, and a positive number over 0 is infinite, since it holds with none. Outputs that
    are not finite give infinity.

    Args:
        messages: ``[..., W, D]`` what each agent sent.
        outputs: ``[..., W, D]`` what each agent made of it.
        network: the network.
        kind: the virtual mixing matrix ``M``: ``"uniform"`` or ``"mixing"``.
        mixing: for ``"mixing"``, the matrix ``E``.
        rounding: the relative rounding error of ``outputs``; by default eight units in the last
            place of the coarser of the two arrays' types.
    """
    sent, made = np.asarray(messages), np.asarray(outputs)
    if sent.shape != made.shape or sent.ndim < 2 or sent.shape[-2] != network.agents:
        raise BezoarError(
            f"messages, outputs: expected one shape [..., {network.agents}, D], "
            f"found {sent.shape} and {made.shape}"
        )
    if rounding is None:
        rounding = 8 * max(_unit(sent), _unit(made))
    regular = np.asarray(network.regular)
    matrix = virtual_mixing(network, kind, mixing)
    shape = (-1, len(regular), sent.shape[-1])
    runs = zip(
        sent[..., regular, :].reshape(shape), made[..., regular, :].reshape(shape), strict=True
    )
    # The pattern of M is the closed regular neighbourhoods: no entry of E on an edge is zero.
    found = [_ratios(matrix, y.astype(np.float64), z.astype(np.float64), rounding) for y, z in runs]
    ratios = np.stack(found).reshape(*sent.shape[:-2], len(regular))
    worst = int(ratios.reshape(-1, len(regular)).max(axis=0).argmax())
    return MeasuredContraction(float(ratios.max()), int(regular[worst]), ratios)


def _unit(values: NDArray[np.generic]) -> float:
    """The unit in the last place of one, for integers that of float64."""
    one = np.ones((), values.dtype if values.dtype.kind == "f" else np.float64)
    return float(np.spacing(one))


def _ratios(matrix, sent: Floats, made: Floats, rounding: float) -> Floats:  # type: ignore[no-untyped-def]
    """``[R]`` the ratio at each regular agent of one run."""
    centres = matrix @ sent
    entries = matrix.tocoo()
    spread = np.zeros(len(sent))
    scale = np.zeros(len(sent))
    norms = np.linalg.norm(sent, axis=1)
    np.maximum.at(scale, entries.row, norms[entries.col])
    step = max(1, CHUNK // max(1, sent.shape[1]))
    for start in range(0, entries.nnz, step):
        rows, columns = entries.row[start : start + step], entries.col[start : start + step]
        distances = np.linalg.norm(sent[columns] - centres[rows], axis=1)
        np.maximum.at(spread, rows, distances)
    missed = np.linalg.norm(made - centres, axis=1) - rounding * scale
    missed = np.maximum(missed, 0.0)
    ratios = np.divide(missed, spread, out=np.zeros_like(missed), where=spread > 0)
    ratios[(spread == 0) & (missed > 0)] = inf
    return np.where(np.isfinite(missed), ratios, inf)
