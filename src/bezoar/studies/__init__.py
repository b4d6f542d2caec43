"""Studies: small sweeps that answer a question about rules, attacks and networks.

Here belongs one module for each question: which runs answer it, and what they say in a sentence.
How runs are trained and shown is the same for all of them.
"""

from bezoar.studies._adaptive import ADAPTIVE
from bezoar.studies._estimate import ESTIMATE
from bezoar.studies._momentum import MOMENTUM
from bezoar.studies._over_time import OVER_TIME, shuffled_agents
from bezoar.studies._pages import write_studies, write_study
from bezoar.studies._placement import PLACEMENT
from bezoar.studies._study import ITERATIONS, SAMPLES, SEEDS, Case, Results, Study, train_study
from bezoar.studies._threat import THREAT
from bezoar.studies._worst_labels import WORST_LABELS

#: Every study by its name.
STUDIES: dict[str, Study] = {
    study.name: study
    for study in (ADAPTIVE, WORST_LABELS, OVER_TIME, PLACEMENT, ESTIMATE, MOMENTUM, THREAT)
}

__all__ = [
    "ITERATIONS",
    "SAMPLES",
    "SEEDS",
    "STUDIES",
    "Case",
    "Results",
    "Study",
    "shuffled_agents",
    "train_study",
    "write_studies",
    "write_study",
]
