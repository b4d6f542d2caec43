import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache folder, and no folder of data but those that a test names."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.delenv("BEZOAR_DATA", raising=False)
    return tmp_path / "cache" / "bezoar"


@pytest.fixture
def folder(tmp_path):
    """A folder for archives."""
    (tmp_path / "data").mkdir()
    return tmp_path / "data"
