"""How well a rule approximates a combination of its regular inputs (Definition 1, Table I).

>>> from bezoar import theory
>>> [f"{row.aggregator} {row.order}" for row in theory.contraction_orders(0.1)][:2]
['trimmed_mean O(δ/(1−2δ))', 'faba O(δ/(1−3δ))']
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from bezoar._arrays import Floats
from bezoar._checks import share
from bezoar._errors import BezoarError
from bezoar.networks import Network, check_network
from bezoar.theory._connectivity import MATRIX_OF, virtual_mixing

#: How many differences between inputs and centres are in memory at a time.
CHUNK = 1 << 21


@dataclass(frozen=True)
class ContractionOrder:
    """A row of Table I: an order of ``ρ``, without constants.

    Attributes:
        aggregator: the rule's name.
        order: the formula in ``δ = δ_max``.
        value: its value; infinite where its denominator is not positive.
        matrix: the kind of virtual mixing matrix, ``"uniform"`` or ``"mixing"``.
    """

    aggregator: str
    order: str
    value: float
    matrix: str


def _ratio(above: float, below: float) -> float:
    return above / below if below > 0 else inf


_TABLE_1: dict[str, tuple[str, Callable[[float], float]]] = {
    "trimmed_mean": ("O(δ/(1−2δ))", lambda d: _ratio(d, 1 - 2 * d)),
    "faba": ("O(δ/(1−3δ))", lambda d: _ratio(d, 1 - 3 * d)),
    "centered_clipping": ("O(√δ)", sqrt),
    "clipped_gossip": ("O(√(δ(1−δ)))", lambda d: sqrt(d * (1 - d))),
    "ios": ("O(δ/(1−3δ))", lambda d: _ratio(d, 1 - 3 * d)),
}


def contraction_orders(delta_max: float) -> tuple[ContractionOrder, ...]:
    """Table I: the orders of the contraction constant ``ρ`` of the paper's rules.

    Compare orders with each other, or over the local contamination rate ``δ_max``. Do not compare
    them with the condition ``ρ < (1−λ)/4``: for that, measure ρ with :func:`measured_contraction`.
    """
    rate = share("delta_max", delta_max)
    return tuple(
        ContractionOrder(rule, order, formula(rate), MATRIX_OF[rule])
        for rule, (order, formula) in _TABLE_1.items()
    )


@dataclass(frozen=True, eq=False)
class MeasuredContraction:
    """The ``ρ`` that Definition 1 needs for one exchange.

    Attributes:
        rho: the largest ratio.
        agent: the lowest regular agent that has it.
        ratios: ``[..., R]`` the ratio at every regular agent.
    """

    rho: float
    agent: int
    ratios: Floats


def measured_contraction(
    messages: ArrayLike,
    outputs: ArrayLike,
    network: Network,
    kind: str,
    *,
    mixing: str = "metropolis",
) -> MeasuredContraction:
    """The ``ρ`` of Definition 1 that one exchange shows.

    It is the largest ``‖agg_w − ȳ_w‖ / max_{v ∈ R̄_w} ‖y_v − ȳ_w‖`` over regular agents, with
    ``ȳ_w = Σ_v M_wv y_v``, without what rounding explains. It is infinite for outputs that are not
    finite. docs/theory.md says what it is worth, and what 0/0 is.

    Args:
        messages: ``[..., W, D]`` what each agent sent.
        outputs: ``[..., W, D]`` what each agent made of it.
        network, kind, mixing: as for :func:`virtual_mixing`, which gives ``M``.
    """
    network = check_network(network)
    sent, made = np.asarray(messages), np.asarray(outputs)
    one = sent.shape == made.shape and sent.ndim >= 2 and sent.shape[-2] == network.agents
    if not one or not sent.size:
        raise BezoarError(
            f"messages, outputs: expected one shape [..., {network.agents}, D] with at least one "
            f"exchange and D of at least 1, found {sent.shape} and {made.shape}"
        )
    types = (each.dtype if each.dtype.kind == "f" else np.float64 for each in (sent, made))
    # Eight units in the last place of the coarser of the two types.
    rounding = 8 * max(float(np.finfo(each).eps) for each in types)
    regular = np.asarray(network.regular)
    matrix = virtual_mixing(network, kind, mixing)
    shape = (-1, len(regular), sent.shape[-1])
    runs = zip(*(each[..., regular, :].reshape(shape) for each in (sent, made)), strict=True)
    found = np.stack([_ratios(matrix, y, z, rounding) for y, z in runs])
    agent = int(regular[found.max(axis=0).argmax()])
    ratios = found.reshape(*sent.shape[:-2], len(regular))
    return MeasuredContraction(float(found.max()), agent, ratios)


def _ratios(
    matrix: sparse.csr_array, messages: ArrayLike, outputs: ArrayLike, rounding: float
) -> Floats:
    """``[R]`` the ratio at each regular agent of one run."""
    sent, made = np.asarray(messages, np.float64), np.asarray(outputs, np.float64)
    centres = matrix @ sent
    # M is positive at the regular inputs of an agent and nowhere else.
    inputs, firsts = matrix.indices, matrix.indptr[:-1]
    agents = np.repeat(np.arange(len(sent)), np.diff(matrix.indptr))
    pieces = 1 + matrix.nnz * sent.shape[1] // CHUNK
    parts = zip(np.array_split(inputs, pieces), np.array_split(agents, pieces), strict=True)
    distances = [np.linalg.norm(sent[v] - centres[w], axis=1) for v, w in parts]
    spread = np.maximum.reduceat(np.concatenate(distances), firsts)
    largest = np.maximum.reduceat(np.linalg.norm(sent, axis=1)[inputs], firsts)
    missed = np.linalg.norm(made - centres, axis=1) - rounding * largest
    missed = np.maximum(missed, 0.0)
    ratios = np.divide(missed, spread, out=np.where(missed > 0, inf, 0.0), where=spread > 0)
    return np.where(np.isfinite(missed), ratios, inf)
