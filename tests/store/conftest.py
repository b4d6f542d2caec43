import pytest
from store_runs import new_store


@pytest.fixture
def store(tmp_path):
    return new_store(tmp_path)
