import pytest

from play import Play


@pytest.fixture
def play():
    with Play() as one:
        yield one
