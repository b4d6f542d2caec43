"""Advice: answers to the question which rule the agents of a network should use.

Here belongs what trains rules side by side on a user's own network, ranks them by what the agents
themselves hold, and says in words what the numbers can carry. Agents know nothing that real agents
would not know, unless that is asked for.
"""

from bezoar.advice._compare import compare
from bezoar.advice._comparison import Comparison, Standing

__all__ = ["Comparison", "Standing", "compare"]
