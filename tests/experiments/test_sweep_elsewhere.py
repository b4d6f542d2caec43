"""Sweeps that are begun in one folder and go on in another, with files named by relative paths."""

import shutil

import pytest
from sweep_runs import Interrupted, Notes, sweep
from test_own_parts import write_parts

from bezoar.experiments import Store, read_sweep, run_key

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def begun(tmp_path, monkeypatch):
    """The folder of a sweep whose first group was stopped after its third iteration."""
    here = tmp_path / "here"
    document = write_parts(here, iterations=6)
    monkeypatch.chdir(here)
    with pytest.raises(KeyboardInterrupt):
        sweep(read_sweep(document.name), "../store", Interrupted(3), checkpoint_seconds=0)
    (tmp_path / "else" / "where").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "else" / "where")
    return here


def measured(store):
    """The checksums of what was measured, by key: they do not depend on where files lie."""
    return {run.key: run.files for run in Store(store).runs()}


def undisturbed(wanted, path):
    sweep(wanted, path)
    return measured(path)


def mean_alone(wanted):
    """The specs that name no file but that of their data."""
    return [spec for spec in wanted if spec.aggregator.name == "weighted_mean"]


def test_the_same_sweep_goes_on_from_its_checkpoint(begun, tmp_path):
    wanted = read_sweep("../../here/sweep.toml")
    notes = Notes()
    swept = sweep(wanted, tmp_path / "store", notes)
    assert notes.began_at == [3, 0, 0, 0]
    assert notes.messages == []
    assert [run.key for run in swept.runs] == [run_key(spec) for spec in wanted]
    assert measured(tmp_path / "store") == undisturbed(wanted, tmp_path / "undisturbed")


def test_a_part_of_the_sweep_goes_on_in_its_company(begun, tmp_path):
    """The other runs of the group are known from what was written down when it was begun."""
    wanted = read_sweep("../../here/sweep.toml")
    notes = Notes()
    swept = sweep(mean_alone(wanted)[:1], tmp_path / "store", notes)
    assert [len(keys) for keys in notes.trained] == [3]
    assert notes.began_at == [3]
    assert notes.messages == []
    expected = undisturbed(wanted, tmp_path / "undisturbed")
    assert measured(tmp_path / "store").items() <= expected.items()
    assert swept.runs[0].provenance["resumed_after"] == 3


def test_moved_files_go_on_from_their_checkpoint(begun, tmp_path, monkeypatch):
    shutil.move(begun, tmp_path / "there")
    monkeypatch.chdir(tmp_path / "there")
    wanted = read_sweep("sweep.toml")
    notes = Notes()
    with pytest.raises(KeyboardInterrupt):
        sweep(wanted, tmp_path / "store", Interrupted(5), checkpoint_seconds=0)
    # From now on the group knows where its files are, whoever goes on with a part of it.
    monkeypatch.chdir(tmp_path)
    sweep(mean_alone(read_sweep("there/sweep.toml"))[:1], "store", notes)
    assert notes.began_at == [5]
    monkeypatch.chdir(tmp_path / "there")
    sweep(wanted, tmp_path / "store", notes)
    assert notes.messages == []
    assert measured(tmp_path / "store") == undisturbed(wanted, tmp_path / "undisturbed")


def test_a_part_of_a_sweep_whose_files_were_moved_starts_over(begun, tmp_path):
    """The rest of the group cannot be found, so what is wanted is planned anew, without it."""
    shutil.move(begun, tmp_path / "there")
    wanted = mean_alone(read_sweep(tmp_path / "there" / "sweep.toml"))
    notes = Notes()
    swept = sweep(wanted, tmp_path / "store", notes)
    [message] = notes.messages
    assert message.startswith("3 runs that were begun cannot go on: ")
    assert "parts/" in message
    assert message.endswith("; those that are asked for start over")
    assert not swept.failures
    assert set(notes.began_at) == {0}
    assert measured(tmp_path / "store") == undisturbed(wanted, tmp_path / "undisturbed")
    assert Store(tmp_path / "store").begun_groups() == []
