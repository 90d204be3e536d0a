"""Generated sequences through the real steps, held against the model of RFC 9111.

SEQUENCES says how many (a bounded share by default), SEED where to begin, to repeat a run."""
import os

from drive import run, shrink, tell
from exceptions import EXCEPTIONS, exception_for
from generate import sequence

SEED = int(os.environ.get("SEED", 0))
SEQUENCES = int(os.environ.get("SEQUENCES", 400))
SHOWN = 3  # disagreements that are made small and printed


def disagreements(steps):
    """The names of what is wrong, or missed without a listed reason."""
    return {(finding.kind, finding.name) for _, finding in run(steps) if not exception_for(finding)}


def small(seed, name):
    return tell(shrink(sequence(seed), lambda steps: name in disagreements(steps)))


def test_sequences():
    found = {}
    for seed in range(SEED, SEED + SEQUENCES):
        for name in disagreements(sequence(seed)):
            found.setdefault(name, []).append(seed)
    shown = [f"{kind} {name}, seeds {seeds[:10]} ({len(seeds)}):\n{small(seeds[0], (kind, name))}"
        for (kind, name), seeds in sorted(found.items(), reverse=True)[:SHOWN]]
    assert not found, "\n\n".join([f"{found.keys()}"] + shown)


def test_every_exception_is_met():
    """One that nothing needs any more is to go."""
    left, seed = {one.title for one in EXCEPTIONS}, SEED
    while left and seed < SEED + 4000:
        for _, finding in run(sequence(seed)):
            exception = exception_for(finding)
            if exception:
                left.discard(exception.title)
        seed += 1
    assert not left
