#!/usr/bin/env python3
"""Every command on a page names a program, and flags that its --help has; links lead somewhere; README.md is short."""
import pathlib
import re
import subprocess
import sys

# What `bazel run //:NAME` runs, below the runfiles; ./run.sh NAME runs the same.
PROGRAMS = {
    "bench": "tools/bench/bench",
    "campaign": "fuzz/campaign/campaign",
    "conformance": "probes/conformance/allocator_programs",
    "plan": "core/plan/tool/tool",
    "probes": "probes/probes",
    "repro": "fuzz/repro/repro",
    "reports": "reports/reports",
    "shrink": "fuzz/shrink/shrink",
    "sweep": "fuzz/sweep/sweep",
}
PLAN_COMMANDS = ("make", "check", "explain", "draw", "compare", "schedules", "schedule")
README_BYTES = 6000
# Of Bazel, of tools/gpu and run.sh, and of libFuzzer.
OTHER_FLAGS = {"--config", "--test_env", "--out", "--help", "--jobs", "--gres", "--cpus-per-task", "--wrap"}


def help_of(program, *command):
    done = subprocess.run([program, *command, "--help"], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def commands(page):
    """Name and arguments of every command of one of our programs."""
    page = page.replace("\\\n", " ")
    for match in re.finditer(r"bazel run (?:--config=\w+ )?//:(\w+)([^\n`#]*)", page):
        yield match.group(1), match.group(2)
    for match in re.finditer(r"\./run\.sh (\w+)([^\n`#&']*)", page):
        if match.group(1) != "tests":
            yield match.group(1), match.group(2)


def problems_of(page, text, helps):
    for name, arguments in commands(text):
        if name not in PROGRAMS:
            yield f"{page}: no program is named {name}"
            continue
        for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]*", arguments):
            if flag not in helps[name]:
                yield f"{page}: {name} has no flag {flag}"
    for flag in re.findall(r"`(--[a-z][a-z-]*)", text):
        if flag not in OTHER_FLAGS and not any(flag in text for text in helps.values()):
            yield f"{page}: no program has the flag {flag}"


def broken_links(page, text):
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        if not (page.parent / target).exists():
            yield f"{page}: nothing at {target}"


def main():
    helps = {name: help_of(program) for name, program in PROGRAMS.items()}
    helps["plan"] += "".join(help_of(PROGRAMS["plan"], command) for command in PLAN_COMMANDS)
    silent = [name for name, text in helps.items() if "--help" not in text]
    problems = [f"{name}: --help says nothing" for name in silent]
    pages = [pathlib.Path("README.md"), *sorted(pathlib.Path("docs").glob("*.md"))]
    found = 0
    for page in pages:
        text = page.read_text()
        found += sum(1 for _ in commands(text))
        problems += [*problems_of(page, text, helps), *broken_links(page, text)]
    size = pages[0].stat().st_size
    if size >= README_BYTES:
        problems.append(f"README.md: {size} bytes, expected less than {README_BYTES}: a manual belongs into docs")
    if found < 20:
        problems.append(f"only {found} commands were found")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
