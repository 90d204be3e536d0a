"""torture.py for a while: SEED=n STEPS=n TORTURES=n make replay REPLAY_TESTS=tests/replay/test_torture.py"""
import os

import pytest

import torture

SEED = int(os.environ.get("SEED", "1"))
STEPS = int(os.environ.get("STEPS", "300"))
TORTURES = int(os.environ.get("TORTURES", "12"))


@pytest.mark.parametrize("seed", range(SEED, SEED + TORTURES))
def test_every_octet_is_where_it_belongs(seed):
    counts = torture.run(seed, STEPS)
    assert counts.get(200, 0) > STEPS / 20  # it did what it is for
