#!/usr/bin/env python3
"""Checks faults.csv: each fault of the published catalogue once, with tests that exist, or a reason.

exit status: 0 the table holds; 1 it does not
"""
import csv
import os
import re
import sys
from collections import Counter

# The catalogue has these numbers of faults in its groups: index and schedule, plan, classification, ...
GROUPS = {"A": 10, "B": 10, "C": 24, "D": 6, "E": 22, "G": 12, "H": 7, "J": 18, "R": 18, "X": 31, "Y": 21}
MOST_OPEN = 0  # may only fall

os.chdir(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
with open("properties/faults.csv", encoding="utf-8", newline="") as file:
    rows = list(csv.DictReader(file))
problems = []
expected = [f"{group}-{number:02}" for group, count in GROUPS.items() for number in range(1, count + 1)]
if [row["id"] for row in rows] != expected:
    problems.append(f"the ids are not those of the catalogue, once and in order: "
                    f"{sorted((Counter(expected) - Counter(r['id'] for r in rows)).keys())} are missing")

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
    for test in row["tests"].split():
        match = re.fullmatch(r"([\w/]+\.cc):(\w+)\.(\w+)", test)
        if not match:
            problems.append(f"{row['id']}: `{test}` is not file:Suite.Test")
            continue
        path, suite, name = match.groups()
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except OSError as error:
            problems.append(f"{row['id']}: {error}")
            continue
        if not re.search(rf"\b(?:TEST|TEST_F|TEST_P|RC_GTEST_PROP)\(\s*{suite},\s*{name}\b", text):
            problems.append(f"{row['id']}: {path} has no test {suite}.{name}")
if kinds["open"] > MOST_OPEN:
    problems.append(f"{kinds['open']} faults are open, not {MOST_OPEN} or fewer")
print(", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())))
print("\n".join(problems))
sys.exit(1 if problems else 0)
