#!/usr/bin/env python3
"""The sweep of the reference case: every class of fault points in all sharing modes, or a sample of them."""
import json
import os
import pathlib
import subprocess
import sys

out = pathlib.Path(os.environ["TEST_TMPDIR"]) / "sweep"
code = subprocess.run(["fuzz/sweep/sweep", "--out", out, *sys.argv[1:]], check=False).returncode
if code != 0:
    sys.exit(code)
summary = json.loads((out / "summary.json").read_text())
# What one failure may come to; the runtime itself ends no process for one.
allowed = {"recovered", "absorbed", "upstream_fatal", "not_reached"}
problems = []
if not summary["complete"]:
    problems.append("it is not complete")
if set(summary["outcomes"]) - allowed:
    problems.append(f"outcomes {summary['outcomes']}, only {sorted(allowed)} are allowed")
whole = summary["sample"] == 0
if summary["fault_points"] < (4000 if whole else 3 * summary["sample"]):
    problems.append(f"only {summary['fault_points']} fault points")
for mode, step in (("checkpoint", "owner_detach"), ("checkpoint", "before_setter"), ("checkpoint", "after_setter"),
                   ("placement", "arena_allocation"), ("arena", "module_backward")):
    rows = [row for row in summary["table"] if row["mode"] == mode and row["point"] == step]
    if whole and (not rows or not all(row["outcomes"].get("recovered") for row in rows)):
        problems.append(f"{step} in mode {mode}: {rows}")
print("\n".join(problems))
sys.exit(1 if problems else 0)
