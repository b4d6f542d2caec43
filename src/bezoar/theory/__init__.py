"""The theory, executable: pure functions of networks and numbers, each citing its equation.

Importing this package does not import torch.

>>> from bezoar import networks, theory
>>> fan = networks.fan(agents=10, poisoned=1)
>>> rates = theory.contamination(fan)
>>> rates.delta < rates.delta_max, theory.connectivity(fan).lam < 1
(True, False)
"""

from bezoar.theory._connectivity import (
    KINDS,
    MATRIX_OF,
    Connectivity,
    connectivity,
    mixing_gap,
    perron_vector,
    virtual_mixing,
)
from bezoar.theory._contamination import (
    Contamination,
    LearningErrorOrder,
    contamination,
    learning_error_orders,
)
from bezoar.theory._contraction import (
    ContractionOrder,
    MeasuredContraction,
    contraction_orders,
    measured_contraction,
)
from bezoar.theory._lower_bound import LowerBound, lower_bound_instances
from bezoar.theory._majority import Counterexample, MajorityDominance, check_majority_dominance
from bezoar.theory._overview import overview
from bezoar.theory._placement import WorstPlacement, worst_connectivity, worst_contamination
from bezoar.theory._softmax import SoftmaxInfimum, softmax_infimum, softmax_smoothness
from bezoar.theory._theorems import Condition, Guarantee, Term, robust_bound, weighted_mean_bound

__all__ = [
    "KINDS",
    "MATRIX_OF",
    "Condition",
    "Connectivity",
    "Contamination",
    "ContractionOrder",
    "Counterexample",
    "Guarantee",
    "LearningErrorOrder",
    "LowerBound",
    "MajorityDominance",
    "MeasuredContraction",
    "SoftmaxInfimum",
    "Term",
    "WorstPlacement",
    "check_majority_dominance",
    "connectivity",
    "contamination",
    "contraction_orders",
    "learning_error_orders",
    "lower_bound_instances",
    "measured_contraction",
    "mixing_gap",
    "overview",
    "perron_vector",
    "robust_bound",
    "softmax_infimum",
    "softmax_smoothness",
    "virtual_mixing",
    "weighted_mean_bound",
    "worst_connectivity",
    "worst_contamination",
]
