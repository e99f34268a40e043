#!/usr/bin/env python3
"""Checks public_bugs.csv: each public report once, with its link and tests that exist, or a reason.

exit status: 0 the table holds; 1 it does not
"""
import os
import re
import sys
from collections import Counter

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import tables  # noqa: E402

# The list has reports 1 to 87, but for those that it dropped, and what was found on the library itself.
DROPPED = {6, 7, 12, 16, 30, 31, 34, 51, 52, 61, 75, 81}
FOUND = ["K2", "K6", "K7", "K8", "K9", "K10", "K11", "K12", "K13"]
LINK = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+/(?:issues|pull)/\d+")
MOST_OPEN = 0  # may only fall

rows = tables.read("public_bugs.csv")
problems = []
for row in rows:
    if row["id"] in FOUND:
        if row["link"]:
            problems.append(f"{row['id']}: a link, but it is no public report")
    elif not LINK.fullmatch(row["link"]):
        problems.append(f"{row['id']}: `{row['link']}` is no link to an issue or pull request")
for link, count in Counter(row["link"] for row in rows if row["link"]).items():
    if count > 1:
        problems.append(f"{link}: {count} rows")
tables.finish(rows, [str(number) for number in range(1, 88) if number not in DROPPED] + FOUND, MOST_OPEN, problems)
