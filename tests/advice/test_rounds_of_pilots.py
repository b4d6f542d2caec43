from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezoar import data, networks
from bezoar.advice import candidates
from bezoar.advice._pilots import pilot_data
from bezoar.advice._regret import SMALL
from bezoar.advice._rounds import GO_ON, Effort, Question, within_effort

RULES, _ = candidates(networks.ring(agents=6), [1])


@pytest.fixture(scope="module")
def question():
    network, small = networks.ring(agents=6), pilot_data(data.mnist(), agents=6, seed=0)
    return Question(network, (1,), ("iid",), ("label_flip",), RULES, {}, small, 0)


@given(st.dictionaries(st.sampled_from([*RULES, "unheard_of"]), st.floats(0, 1)))
def test_the_best_known_rules_are_the_first_candidates_that_are_known(question, known):
    found = replace(question, known=known).best_known()
    assert len(found) == min(GO_ON, len(RULES.keys() & known.keys()))
    assert found == [text for text in known if text in RULES][: len(found)]


def test_a_round_that_was_begun_is_finished_and_few_rules_go_on(question):
    lost = within_effort(question, Effort(1, 1), 1, None).regret[:, 0]
    tied = {text: loss for text, loss in zip(RULES, lost, strict=True) if loss <= SMALL}
    last = max(tied, key=lambda text: tied[text])
    told = []
    asked = replace(question, known={last: 0.0, "rfa": 0.9, "local": 0.9})
    found = within_effort(asked, Effort(2, 1), 1, lambda *some: told.append(some))
    assert len(found.scenarios) == 3  # one in the first round, two placements in the second
    tried = [text for text, one in zip(RULES, found.accuracy[:, -1], strict=True) if one >= 0]
    assert len(tried) == GO_ON
    assert last in tried  # the study decides among tied rules
    assert told[-1][:2] == (2, 2)
