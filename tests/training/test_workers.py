"""Threads that share the work of a step."""

import os
import platform
import subprocess
import sys
import threading
import time

import pytest
import torch

from bezoar import BezoarError
from bezoar.training import Workers


@pytest.mark.parametrize("count", [0, -1, 1.5])
def test_a_number_of_workers_that_cannot_be_is_refused(count):
    with pytest.raises(BezoarError, match="workers: expected an integer of at least 1, found"):
        Workers(count)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_results_come_in_order_whoever_is_first(count):
    def work(item):
        time.sleep(0.002 * (7 - item))
        return item * item

    with Workers(count) as workers:
        for items in (range(7), range(1), ()):
            assert workers.map(work, items) == [item * item for item in items]


def test_the_caller_and_the_others_work():
    """Each of three pieces waits for two more hands."""
    meeting = threading.Barrier(3, timeout=30)
    with Workers(3) as workers:
        hands = workers.map(lambda _: (meeting.wait(), threading.get_ident())[1], range(3))
    assert len(set(hands)) == 3
    assert threading.get_ident() in hands


def test_every_piece_is_computed_with_one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with Workers(2) as workers:
            assert workers.map(lambda _: torch.get_num_threads(), range(6)) == [1] * 6
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("count", [1, 2])
def test_after_an_error_nothing_more_is_begun(count):
    begun = []

    def work(item):
        begun.append(item)
        if item == 2:
            raise ZeroDivisionError("two")
        time.sleep(0.01)

    with Workers(count) as workers:
        with pytest.raises(ZeroDivisionError, match="two"):
            workers.map(work, range(1000))
        assert len(begun) < 20
        assert workers.map(str, range(3)) == ["0", "1", "2"]


def test_pieces_may_have_pieces():
    with Workers(2) as workers:
        found = workers.map(lambda i: sum(workers.map(lambda j: i * j, range(4))), range(4))
    assert found == [0, 6, 12, 18]


def test_a_late_helper_has_one_thread_too():
    """It asks for its number only after the caller is done, and has its own back."""
    before = torch.get_num_threads()
    caller = threading.get_ident()

    def work(_):
        mine = threading.get_ident() == caller
        time.sleep(0.02 if mine else 0.2)
        torch.ones(200, 200) @ torch.ones(200, 200)
        return torch.get_num_threads()

    torch.set_num_threads(2)
    try:
        for _ in range(3):
            with Workers(2) as workers:
                assert workers.map(work, range(2)) == [1, 1]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_helpers_work_in_the_mode_of_the_caller():
    with Workers(2) as workers, torch.inference_mode():
        values = torch.zeros(8)
        workers.map(lambda place: values[place].add_(1), range(8))
        assert values.tolist() == [1] * 8


#: Prints how often the system had to give memory, while a helping thread takes some and frees it.
FAULTS = """
import resource, torch
from bezoar.training import Workers

def take(_):
    for _ in range(30):
        torch.ones(1 << 20)  # 4 MB

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

with Workers(2) as workers:
    workers.map(take, range(4))
    before = faults()
    workers.map(take, range(4))
    print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told")
def test_freed_memory_is_kept_for_its_next_use():
    """Also where the environment asks for the opposite, as that of Dask's workers does."""
    environment = os.environ | {"MALLOC_TRIM_THRESHOLD_": "65536"}
    command = [sys.executable, "-c", FAULTS]
    result = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert (
        int(result.stdout) < 10_000
    )  # pages; one use of the memory takes 1,024, all of them 123,000
