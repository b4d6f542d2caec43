"""Theorems 1 and 2: upper bounds as functions of numbers, their conditions as verdicts.

>>> from bezoar import theory
>>> constants = dict(smoothness=1.0, heterogeneity=1.0, initial_gap=1.0, iterations=10_000)
>>> found = theory.robust_bound(lam=0.2, beta=0.0, rho=0.05, **constants)
>>> found.holds, round(found.guaranteed, 3)
(True, 0.539)
"""

from dataclasses import dataclass
from math import inf, sqrt

from bezoar._checks import non_negative, whole
from bezoar._errors import BezoarError

#: The largest constant: the bounds, which have products of squares, are finite with it.
LARGEST = 1e60


@dataclass(frozen=True)
class Condition:
    """A condition of a theorem and whether it is met.

    Attributes:
        name: the condition in the paper's symbols.
        found: the left side.
        limit: what the left side is compared with.
        holds: the verdict.
    """

    name: str
    found: float
    limit: float
    holds: bool

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "fails"
        return f"{self.name}: {verdict} ({self.found:.6g} against {self.limit:.6g})"


@dataclass(frozen=True)
class Term:
    """A summand of an upper bound.

    Attributes:
        name: where it comes from.
        formula: the summand in the paper's symbols.
        value: its value; infinite where it is not defined.
    """

    name: str
    formula: str
    value: float


@dataclass(frozen=True)
class Guarantee:
    """An upper bound on ``(1/K) Σ_{k<K} ‖∇f(x̄^k)‖²`` for the step size ``1/√K``.

    Attributes:
        theorem: the theorem's name.
        iterations: ``K``.
        omega: ``ω``, how much an iteration contracts.
        conditions: what the theorem asks for, each with its verdict.
        terms: the bound's summands, with the constants of SPEC section 6.
        consensus: the bound on ``max_{w regular} ‖x_w^k − x̄^k‖²``, for every ``k < K``.
        proved: the bound that the proof reaches before its last simplification. For Theorem 1
            this is the one to rely on, see :func:`robust_bound`; for Theorem 2 it is the total.
    """

    theorem: str
    iterations: int
    omega: float
    conditions: tuple[Condition, ...]
    terms: tuple[Term, ...]
    consensus: float
    proved: float

    @property
    def total(self) -> float:
        """The sum of the terms, whether or not the conditions hold."""
        return sum(term.value for term in self.terms)

    @property
    def holds(self) -> bool:
        """Whether every condition holds."""
        return all(condition.holds for condition in self.conditions)

    @property
    def guaranteed(self) -> float:
        """What is promised: ``proved`` if every condition holds, else infinity."""
        return self.proved if self.holds else inf


def robust_bound(
    *,
    lam: float,
    beta: float,
    rho: float,
    smoothness: float,
    heterogeneity: float,
    initial_gap: float,
    iterations: int,
) -> Guarantee:
    """Theorem 1: a ``(ρ, M)``-robust aggregator with step size ``1/√K``.

    A step of the paper's proof holds only while ``ω ≥ 0.2``. For smaller ``ω`` the terms may sum
    to less than what is proved, so rely on ``proved``. docs/theory.md has the formulas.

    Args:
        lam, beta: ``λ`` and ``β`` of the virtual mixing matrix.
        rho: the contraction constant ``ρ``, infinity allowed.
        smoothness, heterogeneity: ``L`` and ``ξ`` (Assumptions 2 and 3).
        initial_gap: ``f(x⁰) − f*``, or anything larger.
        iterations: ``K``.
    """
    lam, beta = finite("lam", lam), finite("beta", beta)
    omega = 1 - lam - 4 * non_negative("rho", rho)
    L, xi = finite("smoothness", smoothness), finite("heterogeneity", heterogeneity)
    gap = finite("initial_gap", initial_gap)
    K = whole("iterations", iterations, 1)
    start = 4 * gap / sqrt(K)
    needed = drift = contamination = consensus = proved = inf
    if omega > 0:
        slowness = ((1 - omega) / omega) ** 2
        needed = max(16 * slowness * L**2, L**2)
        spread = slowness * xi**2 / K
        drift, consensus = 1024 * (1 + rho) ** 2 * L**2 * spread, 64 * spread
        contamination = 256 * rho**2 * xi**2 / omega**2
        distance = 4 * sqrt(spread)
        pulled = ((1 + 4 * rho) * L + 2 * rho * sqrt(K)) * distance + (beta + 4 * rho) * xi
        proved = start + 2 * pulled**2 + 2 * L**2 * distance**2
    conditions = (
        Condition("λ < 1", lam, 1.0, lam < 1),
        Condition("ρ < (1−λ)/4", rho, (1 - lam) / 4, rho < (1 - lam) / 4),
        Condition("K ≥ max{16(1−ω)²L²/ω², L²}", K, needed, needed <= K),
    )
    terms = (
        Term("start", "4(f(x⁰)−f*)/√K", start),
        Term("drift", "1024(1+ρ)²L²(1−ω)²ξ²/(Kω²)", drift),
        Term("contamination", "256ρ²ξ²/ω²", contamination),
        Term("imbalance", "4β²ξ²", 4 * beta**2 * xi**2),
    )
    return Guarantee("Theorem 1", K, omega, conditions, terms, consensus, proved)


def weighted_mean_bound(
    *,
    mixing_gap: float,
    agents: int,
    regular: int,
    smoothness: float,
    heterogeneity: float,
    disturbance: float,
    initial_gap: float,
    iterations: int,
) -> Guarantee:
    """Theorem 2: the weighted mean with step size ``1/√K``.

    Args:
        mixing_gap: ``λ'`` of the mixing matrix.
        agents, regular: ``W`` and ``R``.
        smoothness, heterogeneity, disturbance: ``L``, ``ξ`` and ``A`` (Assumptions 2 to 4).
        initial_gap: ``f(x⁰) − f*``, or anything larger.
        iterations: ``K``.
    """
    omega = 1 - finite("mixing_gap", mixing_gap)
    L, xi = finite("smoothness", smoothness), finite("heterogeneity", heterogeneity)
    gap, A = finite("initial_gap", initial_gap), finite("disturbance", disturbance)
    W = whole("agents", agents, 1)
    R = whole("regular", regular, 1, W)
    K = whole("iterations", iterations, 1)
    contamination = 4 * (1 - R / W) ** 2 * A**2
    needed = drift = consensus = inf
    if omega > 0:
        slowness = (mixing_gap / omega) ** 2
        needed = max(24 * slowness * L**2, L**2)
        spread = slowness * (contamination / 4 + max(xi**2, A**2)) / K
        drift, consensus = 144 * L**2 * W / R * spread, 48 * W * (1 + W / R) * spread
    conditions = (
        Condition("λ' < 1", mixing_gap, 1.0, omega > 0),
        Condition("K ≥ max{24λ'²L²/(1−λ')², L²}", K, needed, needed <= K),
    )
    terms = (
        Term("start", "4(f(x⁰)−f*)/√K", 4 * gap / sqrt(K)),
        Term("drift", "144L²Wλ'²(δ²A²+max{ξ²,A²})/(RK(1−λ')²)", drift),
        Term("contamination", "4δ²A²", contamination),
    )
    total = sum(term.value for term in terms)
    return Guarantee("Theorem 2", K, omega, conditions, terms, consensus, total)


def finite(field: str, found: float) -> float:
    """``found`` as a float, or an error unless it is a number from 0 that is not too large."""
    if non_negative(field, found) > LARGEST:
        raise BezoarError(f"{field}: expected a number from 0 to {LARGEST:g}, found {found!r}")
    return float(found)
