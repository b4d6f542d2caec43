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
    RULES,
    Figure,
    Place,
)
from bezoar.paper._contamination_study import (
    ContaminationStudy,
    LearningError,
    block_network,
    contamination_study,
)
from bezoar.paper._criteria import Curves
from bezoar.paper._figure_claims import CLAIMS
from bezoar.paper._figure_pages import write_figure
from bezoar.paper._recipes import Scale, Variant, Whose
from bezoar.paper._records import write_record
from bezoar.paper._study_pages import write_contamination, write_theorems
from bezoar.paper._theorem_study import (
    THEOREM_RULES,
    consensus_exponents,
    theorem_networks,
    theorem_study,
)
from bezoar.paper._theorems import reduced_mnist, verify
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
    "RULES",
    "THEOREM_RULES",
    "THRESHOLD_STUDY",
    "Claim",
    "ContaminationStudy",
    "Curves",
    "Figure",
    "LearningError",
    "Place",
    "Scale",
    "TrainedComparison",
    "TrainedFigure",
    "Variant",
    "Whose",
    "block_network",
    "consensus_exponents",
    "contamination_study",
    "judge",
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
