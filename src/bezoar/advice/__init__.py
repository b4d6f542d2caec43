"""Advice: answers to the question which rule the agents of a network should use.

Here belongs what trains rules side by side on a user's own network, ranks them by what the agents
themselves hold, and says in words what the numbers can carry: the comparison in one setting, and
the advisor, which tries many. Agents know nothing that real agents would not know, unless that is
asked for.
"""

from bezoar.advice._advice_page import advice_figure, advice_page
from bezoar.advice._advise import Advice, advise
from bezoar.advice._candidates import candidates
from bezoar.advice._compare import compare
from bezoar.advice._comparison import Comparison, Standing
from bezoar.advice._pilot_results import PilotResults, RankedRule
from bezoar.advice._pilots import train_pilots
from bezoar.advice._scenarios import Scenario
from bezoar.advice._study import Study, shipped_study

__all__ = [
    "Advice",
    "Comparison",
    "PilotResults",
    "RankedRule",
    "Scenario",
    "Standing",
    "Study",
    "advice_figure",
    "advice_page",
    "advise",
    "candidates",
    "compare",
    "shipped_study",
    "train_pilots",
]
