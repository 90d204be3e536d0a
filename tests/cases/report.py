"""What a run prints: the table, the failures, where weir is alone, and the verdict on weir."""
import dataclasses
import pathlib

import servers
from case import MAY, MUST, SHOULD
from exceptions import EXCEPTIONS

PASSED, FAILED, UNPROVED = "passed", "failed", "unproved"
EXPLAINED = pathlib.Path(__file__).resolve().parents[2] / "docs/standards.md"
CLOSEST = ("squid", "trafficserver", "apache2")  # those that mean to follow RFC 9111


@dataclasses.dataclass
class Result:
    case: object
    outcome: str
    problem: str = ""

    def __str__(self):
        return f"{self.outcome:<8} {self.case.kind:<6} {self.case.id} [RFC {self.case.section}] {self.problem}".rstrip()


def print_table(results):
    """In Markdown. Where reuse is wanted, what is unproved is just not passed."""
    rows = [["server", "must: passed", "failed", "unproved", "should: passed", "failed", "unproved", "may: passed", "not"]]
    rows.append(["---"] * len(rows[0]))
    for name, ones in results.items():
        def count(kind, *outcomes):
            return str(sum(one.case.kind == kind and one.outcome in outcomes for one in ones))
        rows.append([f"{name} {servers.version(servers.KINDS[name])}",
            *(count(kind, outcome) for kind in (MUST, SHOULD) for outcome in (PASSED, FAILED, UNPROVED)),
            count(MAY, PASSED), count(MAY, FAILED, UNPROVED)])
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |")


def print_failures(results):
    for name, ones in results.items():
        print(f"\n{name}:")
        for one in ones:
            if one.outcome != PASSED:
                print(f"  {one}")


def print_differences(results):
    """The cases where weir is alone, one way or the other. Who has not come to the point does not differ."""
    others = [name for name in CLOSEST if name in results]
    if not others:
        return
    explained = EXPLAINED.read_text()
    print(f"\nwhere weir differs from all of {', '.join(others)}:")
    for place, one in enumerate(results["weir"]):
        theirs = [results[name][place] for name in others]
        if UNPROVED not in (other.outcome for other in theirs) and all(
                (other.outcome == PASSED) != (one.outcome == PASSED) for other in theirs):
            known = "" if f"`{one.case.id}`" in explained else " (not in docs/standards.md)"
            print(f"  weir {one}{known}")
            for name, other in zip(others, theirs):
                print(f"      {name}: {other.outcome} {other.problem}")


def judge(results, seconds):
    """weir's verdict against the table of exceptions: the number of surprises. The last line is as pytest's."""
    surprises = 0
    for one in results:
        if (one.outcome == PASSED) == (one.case.id in EXCEPTIONS):
            surprises += 1
            print(one if one.outcome != PASSED else f"{one} but exceptions.py lists it")
    listed = sum(one.case.id in EXCEPTIONS for one in results)
    print(f"{listed} listed exceptions\n" * bool(listed)
        + f"{len(results) - surprises} passed, {surprises} failed in {seconds:.2f}s")
    return surprises
