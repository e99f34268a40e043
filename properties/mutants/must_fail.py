#!/usr/bin/env python3
"""Runs suites with planted bugs; every named test must fail, and all must have run.

usage: must_fail.py (ID BUG BINARY TEST)...

Each planted bug is one test case of the result. exit status: 0 every bug was caught; 1 one was not
"""
import os
import subprocess
import sys
import xml.etree.ElementTree as xml

arguments = sys.argv[1:]
mutants = [arguments[i:i + 4] for i in range(0, len(arguments), 4)]
result = os.environ.get("XML_OUTPUT_FILE")
# A suite must not write its own result over that of this test.
environment = {name: value for name, value in os.environ.items() if name not in ("XML_OUTPUT_FILE", "GTEST_OUTPUT")}
suite = xml.Element("testsuite", name="mutants")
survivors = 0
for name, bug, binary, test in mutants:
    run = subprocess.run([binary, f"--gtest_filter={test}"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True, errors="replace", env=environment)
    failed = any(line.startswith(f"[  FAILED  ] {test}") for line in run.stdout.splitlines())
    caught = run.returncode == 1 and failed
    case = xml.SubElement(suite, "testcase", name=name, classname="mutants", status="run")
    print(f"{'caught  ' if caught else 'SURVIVED'} {name}: {bug} ({test})")
    if not caught:
        survivors += 1
        xml.SubElement(case, "failure", message=f"survived: {bug} ({test})")
        print(f"exit status {run.returncode}, output:\n{run.stdout[-2000:]}")
print(f"{len(mutants) - survivors} of {len(mutants)} planted bugs caught")
suite.set("tests", str(len(mutants)))
suite.set("failures", str(survivors))
if result:
    xml.ElementTree(suite).write(result, encoding="utf-8", xml_declaration=True)
sys.exit(1 if survivors else 0)
