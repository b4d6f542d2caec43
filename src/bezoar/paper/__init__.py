"""The paper, reproduced.

Here is what each of its figures trains, what it claims of them and how claims are judged, the
theory beside real runs, and the pages that show all this. Whatever any user's runs could need, such
as curves, tables and reports, is in :mod:`bezoar.report`.
"""

from bezoar.paper._claims import Claim, judge, verdict
from bezoar.paper._comparisons import (
    ALL_FIGURES,
    FIGURES,
    MNIST_FIGURES,
    NETWORK_TITLES,
    PARTITION_TITLES,
    RULES,
    Comparison,
    Figure,
    Place,
)
from bezoar.paper._contamination_study import (
    ContaminationStudy,
    LearningError,
    block_network,
    contamination_study,
    learning_errors,
)
from bezoar.paper._criteria import Curves, MissingRunError
from bezoar.paper._figure_claims import CLAIMS
from bezoar.paper._figure_pages import write_figure
from bezoar.paper._recipes import Recipe, Scale, Variant, Whose
from bezoar.paper._records import check_record, write_record
from bezoar.paper._study_pages import write_contamination, write_theorems
from bezoar.paper._theorem_study import (
    OBJECTIVES,
    THEOREM_RULES,
    consensus_exponents,
    theorem_networks,
    theorem_study,
)
from bezoar.paper._theorems import TheoremCheck, reduced_mnist, verify
from bezoar.paper._theory_pages import (
    write_figure_9,
    write_figure_10,
    write_table_1,
    write_table_2,
)
from bezoar.paper._threshold_study import THRESHOLD_STUDY, write_thresholds
from bezoar.paper._trained import (
    TrainedComparison,
    TrainedFigure,
    shown_variant,
    variant_name,
)

__all__ = [
    "ALL_FIGURES",
    "CLAIMS",
    "FIGURES",
    "MNIST_FIGURES",
    "NETWORK_TITLES",
    "OBJECTIVES",
    "PARTITION_TITLES",
    "RULES",
    "THEOREM_RULES",
    "THRESHOLD_STUDY",
    "Claim",
    "Comparison",
    "ContaminationStudy",
    "Curves",
    "Figure",
    "LearningError",
    "MissingRunError",
    "Place",
    "Recipe",
    "Scale",
    "TheoremCheck",
    "TrainedComparison",
    "TrainedFigure",
    "Variant",
    "Whose",
    "block_network",
    "check_record",
    "consensus_exponents",
    "contamination_study",
    "judge",
    "learning_errors",
    "reduced_mnist",
    "shown_variant",
    "theorem_networks",
    "theorem_study",
    "variant_name",
    "verdict",
    "verify",
    "write_contamination",
    "write_figure",
    "write_figure_9",
    "write_figure_10",
    "write_record",
    "write_table_1",
    "write_table_2",
    "write_theorems",
    "write_thresholds",
]
