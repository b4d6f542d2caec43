"""A test class names its rules in ``cases``; a test that takes ``case`` runs for each of them."""

import pytest

pytest.register_assert_rewrite("aggregator_properties")


def pytest_generate_tests(metafunc):
    cases = getattr(metafunc.cls, "cases", None)
    if "case" in metafunc.fixturenames and cases is not None:
        metafunc.parametrize("case", cases, ids=str)
