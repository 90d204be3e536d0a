"""The short form of run.py: TORTURE_SECONDS of it, from TORTURE_SEED if one is given."""
import os
import random

from run import Torture


def test_no_wrong_byte_no_hang_and_nothing_left():
    seed = int(os.environ.get("TORTURE_SEED", random.SystemRandom().randrange(1 << 31)))
    print(f"seed {seed}")
    torture = Torture(seed)
    try:
        failures = torture.run(float(os.environ.get("TORTURE_SECONDS", 30)))
        counts = torture.counts()
    finally:
        torture.close()
    assert not failures, "\n".join([f"seed {seed}", *torture.events, "----", *failures])
    assert counts["operations"] > 1000 and counts["stored"] > 100, counts
    assert min(counts[one] for one in ("whole", "ranges", "multiparts", "not_modified", "left")) > 0, counts
