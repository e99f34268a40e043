#!/usr/bin/env python3
"""Checks what clang-format and the compiler do not: lengths, include guards, forbidden calls, leftovers, rule ids.

usage: tools/tidy.py [--help] [FILE ...]

Checks the given files, or without any every source file of the project, and then docs/rules.md against them. Prints
one line for each finding, `file:line: rule: found, expected`.

exit status: 0 clean; 1 findings; 64 wrong usage
"""
import json
import os
import pathlib
import re
import sys

# Files that may read std::chrono::steady_clock, each with the reason. Nothing that a clock says may reach
# a case, a plan, a schedule or a record.
STEADY_CLOCK = {
    "fuzz/process/child.h": "patience with a child",
    "fuzz/process/child.cc": "patience with a child",
    "fuzz/process/progress.h": "progress and the seconds of a summary",
    "fuzz/process/progress.cc": "progress and the seconds of a summary",
    "tools/bench/work.h": "measures",
}

FILE_LINES = 600
LINE_LENGTH = {"cc": 100, "build": 120, "script": 120, "text": 120}
KINDS = {".h": "cc", ".cc": "cc", ".bzl": "build", ".BUILD": "build", ".py": "script", ".sh": "script", ".md": "text"}
KINDS_BY_NAME = {"BUILD": "build", "BUILD.bazel": "build", "WORKSPACE": "build"}

# rule, pattern of the code, expected; the names are split so that this file passes its own check
CALLS = [
    ("random", r"(?<![\w.>:])(?:(?:std)?::)?s?rand\s*\(", "the project's own seeded generator"),
    ("random", r"\brandom_device\b", "the project's own seeded generator"),
    ("clock", r"\btime\s*\(\s*(?:nullptr|NULL|0|&\w+)\s*\)", "no wall clock"),
    ("clock", r"\b(?:system|high_resolution)_clock\b", "no wall clock"),
]
RANDN = re.compile(r"\b(?:at|torch)::rand(?:n\w*|int\w*|_like)?\s*\(")
LEFTOVERS = re.compile(r"\b(?:" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"]) + r")\b")
MACHINE_PATHS = re.compile(r"(?<![\w.)}\]-])/(?:" + "|".join(["work", "root", "home", "Users"]) + r")/\w*")
# Texts that are not in the repository: a comment says the fact itself.
CITATIONS = re.compile(r"\b(?:runtime|planner|design|allocator|peer|harness|public_bugs)\." + r"md\b")

# Ids of rules: each is a string of its own in the sources, and a row of the page.
RULES_PAGE = "docs/rules.md"
RULE_FOLDERS = ("core", "fuzz", "probes", "properties", "reports", "tools")
RULE_ID = r"[A-Z]{1,3}[0-9]{1,2}[a-z]?"
RULE_ROW = re.compile(rf"\|\s*({RULE_ID})\s*\|.*\|\s*`([^`|]*)`\s*\|\s*$")
STRINGS_AND_COMMENTS = re.compile(
    r'R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"' r'|"(?:\\.|[^"\\\n])*"' r"|(?<![\w'])'(?:\\.|[^'\\\n])+'"
    r"|//[^\n]*" r"|/\*.*?\*/", re.DOTALL)


def code_of(text):
    """C++ text with strings and comments blanked; lines keep their numbers."""
    return STRINGS_AND_COMMENTS.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def kind_of(path, text):
    if path.name in KINDS_BY_NAME:
        return KINDS_BY_NAME[path.name]
    if not path.suffix and text.startswith("#!"):
        return "script"
    return KINDS.get(path.suffix)


def closing(text, start, pair):
    """The index after the bracket that closes the one at `start`; None if nothing does."""
    depth = 0
    for index in range(start, len(text)):
        depth += {pair[0]: 1, pair[1]: -1}.get(text[index], 0)
        if depth == 0:
            return index + 1
    return None


def unordered_names(code):
    """Variables, members and functions that are declared with an unordered container as their type."""
    names = set()
    for match in re.finditer(r"\bunordered_(?:multi)?(?:map|set)\s*(?=<)", code):
        end = closing(code, match.end(), "<>")
        name = end and re.match(r"[\s&*]*(?:const\b\s*)?(\w+)\s*[;={(,):\[]", code[end:])
        if name:
            names.add(name.group(1))
    return names


def unordered_loops(code, names):
    """(offset, name) of every range-for over one of the names."""
    for match in re.finditer(r"\bfor\s*(?=\()", code):
        end = closing(code, match.end(), "()")
        head = code[match.end() + 1:end - 1] if end else ""
        if head.count(";") > 1:
            continue
        parts = re.split(r"(?<!:):(?!:)", head.rpartition(";")[2], maxsplit=1)
        last = len(parts) == 2 and re.search(r"(\w+)\s*(?:\(\s*\))?\s*$", parts[1])
        if last and last.group(1) in names:
            yield match.start(), last.group(1)


def check_lines(name, kind, lines):
    fenced = False
    for number, line in enumerate(lines, 1):
        if kind == "text" and line.startswith("```"):
            fenced = not fenced
        free = "://" in line or (kind == "text" and (fenced or line.startswith("|")))
        if len(line) > LINE_LENGTH[kind] and not free:
            yield number, "line-length", f"{len(line)} characters", f"at most {LINE_LENGTH[kind]}"
        if "\t" in line:
            yield number, "tab", "a tab", "spaces"
        if line != line.rstrip():
            yield number, "trailing-space", "space at the end of the line", "none"
        for match in LEFTOVERS.finditer(line):
            yield number, "leftover", match.group(), "finished work"
        for match in MACHINE_PATHS.finditer(line):
            yield number, "machine-path", match.group(), "a path that exists on every machine"
        for match in CITATIONS.finditer(line):
            yield number, "citation", match.group(), "the fact itself: that text is not in the repository"
    if len(lines) > FILE_LINES:
        yield FILE_LINES + 1, "file-length", f"{len(lines)} lines", f"at most {FILE_LINES}"


def check_guard(name, lines):
    guard = re.sub(r"[^A-Z0-9]", "_", name.upper()) + "_"
    directives = [(n, line.split()) for n, line in enumerate(lines, 1) if line.startswith("#")] or [(1, ["nothing"])]
    for (number, found), expected in zip(directives[:2], (["#ifndef", guard], ["#define", guard])):
        if found != expected:
            yield number, "include-guard", " ".join(found), " ".join(expected)
            return
    number, found = directives[-1]
    if len(directives) < 3 or found[0] != "#endif" or guard not in found:
        yield number, "include-guard", " ".join(found), f"#endif  // {guard}"


def check_code(name, code, header):
    def line_of(offset):
        return code.count("\n", 0, offset) + 1

    for rule, pattern, expected in CALLS:
        for match in re.finditer(pattern, code):
            yield line_of(match.start()), rule, match.group(), expected
    if not name.endswith("_test.cc"):
        for match in RANDN.finditer(code):
            yield line_of(match.start()), "random", match.group(), "the project's own seeded generator"
    clock = re.search(r"\bsteady_clock\b", code)
    if clock and name not in STEADY_CLOCK:
        yield line_of(clock.start()), "clock", clock.group(), "none, or an entry in STEADY_CLOCK of tools/tidy.py"
    for offset, variable in unordered_loops(code, unordered_names(code) | unordered_names(header)):
        yield line_of(offset), "unordered-loop", f"range-for over {variable}", "an ordered container"


def check_text(name, text, header=""):
    """(line, rule, found, expected) of every finding. `header`: text of the file's own header, if it has one."""
    kind = kind_of(pathlib.PurePath(name), text)
    if kind is None:
        return []
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    findings = list(check_lines(name, kind, lines))
    if kind == "cc":
        if name.endswith(".h"):
            findings += check_guard(name, lines)
        findings += check_code(name, code_of(text), code_of(header))
    return sorted(findings)


def sources(root):
    for folder, folders, files in os.walk(root):
        hidden = {f for f in folders if f.startswith(".") and f != ".ci"}
        built = {f for f in folders if folder == str(root) and (f == "out" or f.startswith("bazel-"))}
        folders[:] = sorted(set(folders) - hidden - built)
        yield from (pathlib.Path(folder) / f for f in sorted(files))


def check_file(root, path):
    if path.suffix and path.suffix not in KINDS and path.name not in KINDS_BY_NAME:
        return []
    text = path.read_text(encoding="utf-8", errors="replace")
    header = path.with_suffix(".h")
    has_header = path.suffix == ".cc" and header.is_file()
    return check_text(path.relative_to(root).as_posix(), text, header.read_text() if has_header else "")


def holds_rules(path):
    """Whether ids in this file, named from the root, are those of production code: tests match ids, and throw none."""
    testing = path.stem.endswith(("_test", "testing")) or {"testing", "testdata"} & set(path.parts)
    return path.suffix in (".cc", ".h") and path.parts[0] in RULE_FOLDERS and not testing


def rule_ids(text):
    """(line, id, thrown) of every string of a C++ text that is an id. One that is compared with is not thrown."""
    for match in STRINGS_AND_COMMENTS.finditer(text):
        if re.fullmatch(f'"{RULE_ID}"', match.group()):
            compared = re.search(r"[=!]=\s*$", text[max(0, match.start() - 80):match.start()])
            yield text.count("\n", 0, match.start()) + 1, match.group()[1:-1], not compared


def check_rules(page, sources_by_name, exists):
    """(file, line, rule, found, expected) of every difference between the page of rules and the sources."""
    rows = {}
    for number, line in enumerate(page.split("\n"), 1):
        row = RULE_ROW.match(line)
        if not row:
            continue
        rule, promise = row.groups()
        if rule in rows:
            yield RULES_PAGE, number, "rule-id", f"a second row of {rule}", "one row for each id"
        rows.setdefault(rule, number)
        if not exists(promise):
            yield RULES_PAGE, number, "rule-id", promise, "a file of the project"
    thrown = set()
    for name, text in sources_by_name.items():
        for number, rule, throws in rule_ids(text):
            if throws:
                thrown.add(rule)
            if rule not in rows:
                yield name, number, "rule-id", rule, f"a row of {RULES_PAGE} that says what it means"
    for rule, number in rows.items():
        if rule not in thrown:
            yield RULES_PAGE, number, "rule-id", f"{rule}, which no source throws", "the id of a rule"


def check_rules_of(root, paths):
    page = root / RULES_PAGE
    named = ((path.relative_to(root), path) for path in paths)
    texts = {name.as_posix(): path.read_text(encoding="utf-8", errors="replace")
             for name, path in named if holds_rules(name)}
    return sorted(check_rules(page.read_text() if page.is_file() else "", texts, lambda name: (root / name).is_file()))


def check_wheel(root):
    """The wheel whose headers are precompiled is the pinned one."""
    name = "third_party/precompiled/version.bzl"
    if not (root / name).is_file():
        return
    pins = json.loads((root / "third_party/torch/wheels.json").read_text())["wheels"]
    expected = next(pin["version"] for pin in pins if pin["name"] == "torch")
    found = re.search(r'TORCH_VERSION = "(.*)"', (root / name).read_text()).group(1)
    if found != expected:
        yield name, 1, "wheel", found, f"{expected}, as third_party/torch/wheels.json"


def main(arguments):
    if any(a.startswith("-") for a in arguments):
        print(__doc__, end="")
        return 0 if arguments in (["--help"], ["-h"]) else 64
    # Bazel runs this file through a link: where the link leads is the project.
    root = pathlib.Path(__file__).resolve().parent.parent
    paths = [pathlib.Path(a).resolve() for a in arguments] or [p for p in sources(root) if p.is_file()]
    strangers = [p for p in paths if not p.is_file() or root not in p.parents]
    if strangers:
        print(f"tools/tidy.py: {strangers[0]}: expected a file of the project", file=sys.stderr)
        return 64
    count = 0
    for path in paths:
        for line, rule, found, expected in check_file(root, path):
            print(f"{path.relative_to(root).as_posix()}:{line}: {rule}: found {found}, expected {expected}")
            count += 1
    for name, line, rule, found, expected in [] if arguments else [*check_rules_of(root, paths), *check_wheel(root)]:
        print(f"{name}:{line}: {rule}: found {found}, expected {expected}")
        count += 1
    print(f"{len(paths)} files, {count} findings", file=sys.stderr)
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
