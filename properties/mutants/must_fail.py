#!/usr/bin/env python3
"""Runs suites with planted bugs; every named test must fail, and all must have run.

usage: must_fail.py (ID BUG BINARY TEST)...

exit status: 0 every bug was caught; 1 one was not
"""
import subprocess
import sys

arguments = sys.argv[1:]
mutants = [arguments[i:i + 4] for i in range(0, len(arguments), 4)]
survivors = 0
for name, bug, binary, test in mutants:
    run = subprocess.run([binary, f"--gtest_filter={test}"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True, errors="replace")
    failed = any(line.startswith(f"[  FAILED  ] {test}") for line in run.stdout.splitlines())
    caught = run.returncode == 1 and failed
    print(f"{'caught  ' if caught else 'SURVIVED'} {name}: {bug} ({test})")
    if not caught:
        survivors += 1
        print(f"exit status {run.returncode}, output:\n{run.stdout[-2000:]}")
print(f"{len(mutants) - survivors} of {len(mutants)} planted bugs caught")
sys.exit(1 if survivors else 0)
