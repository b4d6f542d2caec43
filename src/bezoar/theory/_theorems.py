"""Theorems 1 and 2: upper bounds as functions of numbers, their conditions as verdicts."""

from dataclasses import dataclass
from math import inf, sqrt

from bezoar._errors import BezoarError
from bezoar.theory._checks import non_negative, whole


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
    def step_size(self) -> float:
        """The step size ``γ = 1/√K`` that the bound is for."""
        return 1 / sqrt(self.iterations)

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

    With ``ω = 1 − λ − 4ρ`` the terms are ``4(f(x⁰)−f*)/√K``, ``1024(1+ρ)²L²(1−ω)²ξ²/(Kω²)``,
    ``256ρ²ξ²/ω²`` and ``4β²ξ²``; the consensus error is at most ``64(1−ω)²ξ²/(Kω²)``.

    ``proved`` is, with ``d = 4(1−ω)γξ/ω`` the bound on the distance to the weighted centroid,
    ``4(f(x⁰)−f*)/√K + 2[((1+4ρ)L + 2ρ/γ)d + (β+4ρ)ξ]² + 2L²d²``: the first line of the display
    in the proof that inserts ``d``. Its next step takes the square of a sum of four for at most
    twice the sum of the squares, where four times is needed, so the terms follow from it only if
    they leave room. They do for ``ω ≥ 0.2``: by Cauchy–Schwarz with weights ``(α, b, ½)`` the
    step needs ``(2−ω)²/8 + (1+4ρ)²/(32(1+ρ)²−1) ≤ ½``. For smaller ``ω`` the terms may sum to
    less than ``proved``; otherwise ``proved`` is the smaller.

    Args:
        lam: ``λ`` of the virtual mixing matrix.
        beta: ``β`` of the virtual mixing matrix.
        rho: the contraction constant ``ρ``, infinity allowed.
        smoothness: ``L`` (Assumption 2).
        heterogeneity: ``ξ`` (Assumption 3).
        initial_gap: ``f(x⁰) − f*``, or anything larger.
        iterations: ``K``.
    """
    lam, beta, rho = (
        non_negative("lam", lam),
        non_negative("beta", beta),
        non_negative("rho", rho),
    )
    L, xi, gap = _finite(
        smoothness=smoothness, heterogeneity=heterogeneity, initial_gap=initial_gap
    )
    K = whole("iterations", iterations, 1)
    omega = 1 - lam - 4 * rho
    met = omega > 0
    needed = max(16 * (1 - omega) ** 2 * L**2 / omega**2, L**2) if met else inf
    conditions = (
        Condition("λ < 1", lam, 1.0, lam < 1),
        Condition("ρ < (1−λ)/4", rho, (1 - lam) / 4, rho < (1 - lam) / 4),
        Condition("K ≥ max{16(1−ω)²L²/ω², L²}", K, needed, needed <= K),
    )
    drift = (1 - omega) ** 2 * xi**2 / (K * omega**2) if met else inf
    start = 4 * gap / sqrt(K)
    terms = (
        Term("start", "4(f(x⁰)−f*)/√K", start),
        Term(
            "drift",
            "1024(1+ρ)²L²(1−ω)²ξ²/(Kω²)",
            1024 * (1 + rho) ** 2 * L**2 * drift if met else inf,
        ),
        Term("contamination", "256ρ²ξ²/ω²", 256 * rho**2 * xi**2 / omega**2 if met else inf),
        Term("imbalance", "4β²ξ²", 4 * beta**2 * xi**2),
    )
    proved = inf
    if met:
        distance = 4 * sqrt(drift)
        pulled = ((1 + 4 * rho) * L + 2 * rho * sqrt(K)) * distance + (beta + 4 * rho) * xi
        proved = start + 2 * pulled**2 + 2 * L**2 * distance**2
    return Guarantee("Theorem 1", K, omega, conditions, terms, 64 * drift, proved)


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

    With ``δ = 1 − R/W`` and ``S = δ²A² + max{ξ², A²}`` the terms are ``4(f(x⁰)−f*)/√K``,
    ``144L²Wλ'²S/(RK(1−λ')²)`` and ``4δ²A²``; the consensus error is at most
    ``48W(1+W/R)λ'²S/(K(1−λ')²)``.

    Args:
        mixing_gap: ``λ'`` of the mixing matrix.
        agents: ``W``.
        regular: ``R``.
        smoothness: ``L`` (Assumption 2).
        heterogeneity: ``ξ`` (Assumption 3).
        disturbance: ``A`` (Assumption 4).
        initial_gap: ``f(x⁰) − f*``, or anything larger.
        iterations: ``K``.
    """
    slow = non_negative("mixing_gap", mixing_gap)
    L, xi, A, gap = _finite(
        smoothness=smoothness,
        heterogeneity=heterogeneity,
        disturbance=disturbance,
        initial_gap=initial_gap,
    )
    W = whole("agents", agents, 1)
    R = whole("regular", regular, 1, W)
    K = whole("iterations", iterations, 1)
    delta = 1 - R / W
    omega = 1 - slow
    met = omega > 0
    ratio = (slow / omega) ** 2 if met else inf
    needed = max(24 * ratio * L**2, L**2) if met else inf
    conditions = (
        Condition("λ' < 1", slow, 1.0, met),
        Condition("K ≥ max{24λ'²L²/(1−λ')², L²}", K, needed, needed <= K),
    )
    spread = delta**2 * A**2 + max(xi**2, A**2)
    terms = (
        Term("start", "4(f(x⁰)−f*)/√K", 4 * gap / sqrt(K)),
        Term(
            "drift",
            "144L²Wλ'²(δ²A²+max{ξ²,A²})/(RK(1−λ')²)",
            144 * L**2 * W * ratio * spread / (R * K) if met else inf,
        ),
        Term("contamination", "4δ²A²", 4 * delta**2 * A**2),
    )
    consensus = 48 * W * (1 + W / R) * ratio * spread / K if met else inf
    total = sum(term.value for term in terms)
    return Guarantee("Theorem 2", K, omega, conditions, terms, consensus, total)


def _finite(**numbers: float) -> list[float]:
    for field, found in numbers.items():
        if non_negative(field, found) == inf:
            raise BezoarError(f"{field}: expected a finite number of at least 0, found {found!r}")
    return [float(found) for found in numbers.values()]
