#!/usr/bin/env python3
"""Counts the test cases of one `bazel test` run.

usage: tools/count_tests.py EVENTS.json

EVENTS.json comes from `bazel test --build_event_json_file=EVENTS.json`: it names the targets of this run and
their test.xml files, so that no result of an earlier run is counted. A failed target that names no failed case,
a test target that was not built or left no readable test.xml, and a run that failed for any other reason count
as one failed case each. Skipped and disabled cases do not count. Names every failure; the last line is
`N passed, N failed`.

exit status: 0 all passed; 1 failures; 64 wrong usage
"""
import json
import sys
import urllib.parse
import xml.etree.ElementTree


def read_events(path):
    try:
        with open(path, encoding="utf-8") as lines:
            return [json.loads(line) for line in lines if line.endswith("\n")]
    except (OSError, ValueError):
        return []


def cases_of(result):
    """(name, passed) of every case of one test process, from its test.xml and its exit status."""
    files = {f["name"]: urllib.parse.unquote(urllib.parse.urlparse(f.get("uri", "")).path)
             for f in result.get("testActionOutput", [])}
    try:
        elements = list(xml.etree.ElementTree.parse(files["test.xml"]).getroot().iter("testcase"))
    except (KeyError, OSError, xml.etree.ElementTree.ParseError):
        return [("(no readable test.xml)", False)]
    if not elements:
        return [("(no test case)", False)]
    cases = []
    for case in elements:
        if case.find("skipped") is not None or case.get("status") == "notrun":
            continue
        name = ".".join(part for part in (case.get("classname"), case.get("name")) if part)
        cases.append((name, case.find("failure") is None and case.find("error") is None))
    status = result.get("status", "NO_STATUS")
    if status != "PASSED" and all(passed for _, passed in cases):
        cases.append((f"({status}, though no case failed)", False))
    return cases


def count(events):
    """([name of each passed case], [name of each failed case], [targets that were built but not asked to run])."""
    tests, built, results = set(), set(), {}
    exit_code = "none: Bazel did not finish"
    for event in events:
        kind, identity = next(iter(event["id"].items()))
        label = identity.get("label")
        if kind == "targetConfigured" and "testSize" in event.get("configured", {}):
            tests.add(label)
        elif kind == "targetCompleted" and event.get("completed", {}).get("success"):
            built.add(label)
        elif kind == "testResult":
            process = (label, identity.get("run", 1), identity.get("shard", 1))
            attempt = identity.get("attempt", 1)
            if attempt >= results.get(process, (0, None))[0]:
                results[process] = (attempt, event.get("testResult", {}))
        elif kind == "buildFinished":
            exit_code = event.get("finished", {}).get("exitCode", {}).get("code", 0)
    passed, failed = [], []
    for (label, _, _), (_, result) in sorted(results.items()):
        for name, good in cases_of(result):
            (passed if good else failed).append(f"{label} {name}")
    idle = tests - {label for label, _, _ in results}
    failed += [f"{label} (not built)" for label in sorted(idle - built)]
    if exit_code != 0 and not failed:
        failed.append(f"bazel test (exit status {exit_code}, though no test failed)")
    return passed, failed, sorted(idle & built)


def main(arguments):
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__, end="")
        return 0 if arguments in (["--help"], ["-h"]) else 64
    passed, failed, filtered = count(read_events(arguments[0]))
    for label in filtered:
        print(f"not run: {label}")
    for name in failed:
        print(f"FAILED: {name}")
    print(f"{len(passed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
