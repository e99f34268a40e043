"""Checks tables that name, for each entry of a list, the tests on it: faults.csv, public_bugs.csv.

A row's column `tests` is `file.cc:Suite.Test` names that exist, separated by spaces, or `excluded: reason`,
or `open: reason`.
"""
import csv
import os
import re
import sys
from collections import Counter

TEST = re.compile(r"([\w/]+\.cc):(\w+)\.(\w+)")


def read(name):
    """The rows of properties/NAME. From here on paths are those of the project."""
    os.chdir(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    with open(f"properties/{name}", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def problem_of_test(test):
    """Why `file.cc:Suite.Test` is no test; None if it is one."""
    match = TEST.fullmatch(test)
    if not match:
        return f"`{test}` is not file:Suite.Test"
    path, suite, name = match.groups()
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError as error:
        return str(error)
    if not re.search(rf"\b(?:TEST|TEST_F|TEST_P|RC_GTEST_PROP)\(\s*{suite},\s*{name}\b", text):
        return f"{path} has no test {suite}.{name}"
    return None


def finish(rows, expected_ids, most_open, problems=()):
    """Adds what is wrong with ids and tests, prints all of it with the counts, and exits: 0 if nothing is."""
    problems = list(problems)
    ids = [row["id"] for row in rows]
    if ids != expected_ids:
        missing, extra = Counter(expected_ids) - Counter(ids), Counter(ids) - Counter(expected_ids)
        problems.append(f"the ids are not those of the list, once and in order: missing {sorted(missing)}, "
                        f"too many {sorted(extra)}")
    kinds = Counter()
    for row in rows:
        kind, _, reason = row["tests"].partition(": ")
        if kind in ("excluded", "open"):
            kinds[kind] += 1
            if not reason:
                problems.append(f"{row['id']}: no reason")
            continue
        kinds["tested"] += 1
        if not row["tests"].split():
            problems.append(f"{row['id']}: no test")
        problems += [f"{row['id']}: {found}" for found in map(problem_of_test, row["tests"].split()) if found]
    if kinds["open"] > most_open:
        problems.append(f"{kinds['open']} are open, not {most_open} or fewer")
    print(", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())))
    print("\n".join(problems))
    sys.exit(1 if problems else 0)
