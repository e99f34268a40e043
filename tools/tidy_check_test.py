#!/usr/bin/env python3
"""Every rule of tools/tidy.py, seen failing on a bad snippet and passing on a good one."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import tidy

HEADER = "#ifndef CORE_A_H_\n#define CORE_A_H_\n{}\n#endif  // CORE_A_H_\n"
MAP = "std::unordered_map<int, std::pair<int, int>> table_;\n"


def rules(name, text, header=""):
    return [(line, rule) for line, rule, _, _ in tidy.check_text(name, text, header)]


class Lines(unittest.TestCase):
    def test_length_depends_on_the_kind_of_file(self):
        for name, limit in [("a.cc", 100), ("BUILD", 120), ("a.bzl", 120), ("a.py", 120), ("a.sh", 120), ("a.md", 120)]:
            self.assertEqual(rules(name, "x" * limit + "\n"), [], name)
            self.assertEqual(rules(name, "\n" + "x" * (limit + 1) + "\n"), [(2, "line-length")], name)
        self.assertEqual(rules("tools/run", "#!/bin/sh\n" + "x" * 121), [(2, "line-length")])

    def test_data_tables_and_addresses_may_be_long(self):
        self.assertEqual(rules("a.json", "x" * 500), [])
        self.assertEqual(rules("a.md", "| " + "x" * 500 + " |\n```\n" + "x" * 500 + "\n```\n"), [])
        self.assertEqual(rules("a.md", "```\n```\n" + "x" * 500), [(3, "line-length")])
        self.assertEqual(rules("a.cc", "// https:" + "//example.com/" + "x" * 100), [])

    def test_length_of_a_file(self):
        self.assertEqual(rules("a.cc", "x\n" * 600), [])
        self.assertEqual(rules("a.cc", "x\n" * 601), [(601, "file-length")])

    def test_white_space(self):
        self.assertEqual(rules("a.cc", "a\n\tb\n"), [(2, "tab")])
        for end in (" ", "\r"):
            self.assertEqual(rules("BUILD", "a" + end + "\nb\n"), [(1, "trailing-space")])

    def test_leftovers(self):
        for word in ("TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"):
            self.assertEqual(rules("a.cc", f"// {word}(me): later\n"), [(1, "leftover")], word)
            self.assertEqual(rules("a.py", f"# {word}\n"), [(1, "leftover")], word)
        self.assertEqual(rules("a.sh", "mktemp /tmp/aXXXXXX\n"), [])

    def test_paths_of_one_machine(self):
        for folder in ("work", "root", "home", "Users"):
            self.assertEqual(rules("a.md", f"see `/{folder}/me`\n"), [(1, "machine-path")], folder)
        self.assertEqual(rules("a.md", "see core/work/a.h and https:" + "//example.com/work/a\n"), [])

    def test_texts_that_are_not_here(self):
        for text in ("runtime", "planner", "design", "allocator", "peer", "harness", "public_bugs"):
            self.assertEqual(rules("a.cc", f"// as {text}." + "md 2.3 says\n"), [(1, "citation")], text)
        self.assertEqual(rules("a.md", "see bench.md, core/design and library.md\n"), [])


class RuleIds(unittest.TestCase):
    PAGE = "# Rules\n\n| id | meaning | promised in |\n|---|---|---|\n| C01 | it is bad | `core/a.h` |\n"

    def findings(self, page, sources):
        return list(tidy.check_rules(page, sources, lambda name: name == "core/a.h"))

    def test_pages_and_sources_that_agree(self):
        for throw in ('Error({"C01", where})', 'Error({.rule = "C01"})', 'require(a == b, "C01", 1)',
                      'adopt(target_,\n  "C01")'):
            self.assertEqual(self.findings(self.PAGE, {"core/a.cc": throw}), [], throw)

    def test_an_id_without_row(self):
        found = self.findings(self.PAGE, {"core/a.cc": 'Error({"C01"});\n\nError({"PL17"});\n'})
        self.assertEqual([finding[:4] for finding in found], [("core/a.cc", 3, "rule-id", "PL17")])

    def test_a_row_without_id(self):
        for source in ("", '// "C01"\n', 'f("C01 is bad");', 'if (error.rule() == "C01") g();', 'a != "C01"'):
            found = self.findings(self.PAGE, {"core/a.cc": source})
            self.assertEqual([finding[:3] for finding in found], [("docs/rules.md", 5, "rule-id")], source)

    def test_a_second_row_and_a_file_that_is_not_there(self):
        page = self.PAGE + "| C01 | it is worse | `core/b.h` |\n"
        found = self.findings(page, {"core/a.cc": 'Error({"C01"})'})
        self.assertEqual([finding[:4] for finding in found], [("docs/rules.md", 6, "rule-id", "a second row of C01"),
                                                             ("docs/rules.md", 6, "rule-id", "core/b.h")])

    def test_which_files_hold_rules(self):
        for name, holds in [("core/a.cc", True), ("probes/a.h", True), ("tools/bench/a.cc", True),
                            ("core/a_test.cc", False), ("core/testing/a.cc", False), ("properties/testing.cc", False),
                            ("properties/published_testing.cc", False), ("third_party/a.cc", False), ("a.cc", False),
                            ("core/testdata/a.cc", False), ("core/a.py", False)]:
            self.assertEqual(bool(tidy.holds_rules(pathlib.PurePath(name))), holds, name)


class IncludeGuard(unittest.TestCase):
    def test_follows_the_path(self):
        self.assertEqual(rules("core/a.h", HEADER.format("int a();")), [])
        self.assertEqual(rules("core/b.h", HEADER.format("int a();")), [(1, "include-guard")])
        self.assertEqual(rules("core/a.h", HEADER.replace("define CORE", "define FORE")), [(2, "include-guard")])
        self.assertEqual(rules("core/a.h", "#pragma once\nint a();\n"), [(1, "include-guard")])
        self.assertEqual(rules("core/a.h", "int a();\n"), [(1, "include-guard")])
        self.assertEqual(rules("core/a.h", HEADER.replace("#endif  // CORE_A_H_", "#endif")), [(4, "include-guard")])


class Calls(unittest.TestCase):
    def test_randomness(self):
        for call in ("rand()", "std::rand()", "srand(1)", "std::random_device d", "at::randn({2})", "torch::randn({2})",
                     "torch::rand({2})", "at::randn_like(a)"):
            self.assertEqual(rules("a.cc", f"\nx = {call};\n"), [(2, "random")], call)
        for call in ("operand(1)", "a.rand()", "mine::rand()", "grandn(1)"):
            self.assertEqual(rules("a.cc", f"x = {call};\n"), [], call)
        self.assertEqual(rules("a_test.cc", "at::randn({2}); torch::randn({2});\n"), [])
        self.assertEqual(rules("a_test.cc", "rand();\n"), [(1, "random")])

    def test_clocks(self):
        for clock in ("time(nullptr)", "std::time(NULL)", "time(&now)", "std::chrono::system_clock::now()",
                      "std::chrono::high_resolution_clock::now()", "std::chrono::steady_clock::now()"):
            self.assertEqual(rules("a.cc", f"\nx = {clock};\n"), [(2, "clock")], clock)
        self.assertEqual(rules("a.cc", "run_time(0); elapsed_time(a, b);\n"), [])

    def test_steady_clock_in_a_listed_file(self):
        text = "std::chrono::steady_clock::now();\n"
        tidy.STEADY_CLOCK["fuzz/progress.cc"] = "seconds of the progress line"
        try:
            self.assertEqual(rules("fuzz/progress.cc", text), [])
            self.assertEqual(rules("fuzz/progress.h", HEADER.format(text).replace("CORE_A", "FUZZ_PROGRESS")),
                             [(3, "clock")])
        finally:
            del tidy.STEADY_CLOCK["fuzz/progress.cc"]

    def test_not_in_comments_and_strings(self):
        self.assertEqual(rules("a.cc", '// no rand()\n/* time(nullptr)\n */ a("rand()"); b = R"(srand(1))";\n'), [])
        self.assertEqual(rules("a.cc", "a = 1'000; /* \" */ b = '\"'; rand();\n"), [(1, "random")])


class UnorderedLoop(unittest.TestCase):
    def test_over_a_name_of_the_file_or_its_header(self):
        for loop in ("for (const auto& [a, b] : table_) f(a);", "for (auto& x : this->table_) {",
                     "for (auto x : a.table_)", "for (int i = 0; auto& x : table_)", "for (auto x :\n     table_)"):
            self.assertEqual(rules("a.cc", MAP + loop + "\n"), [(2, "unordered-loop")], loop)
            self.assertEqual(rules("a.cc", loop + "\n", header=MAP), [(1, "unordered-loop")], loop)

    def test_every_declaration(self):
        for declaration in ("std::unordered_set<int> s;", "std::unordered_multimap<int, int> s{};",
                            "void f(const std::unordered_set<int>& s) {", "const std::unordered_set<int>& s() const;",
                            "std::unordered_map<\n    int, std::vector<int>>\n    s = g();"):
            found = rules("a.cc", declaration + "\nfor (int x : s) f(x);\n")
            self.assertEqual([rule for _, rule in found], ["unordered-loop"], declaration)
        self.assertEqual([rule for _, rule in rules("a.cc", "std::unordered_set<int> s();\nfor (int x : s()) f();\n")],
                         ["unordered-loop"])

    def test_other_loops(self):
        for loop in ("for (auto& x : sorted(table_)) f(x);", "for (auto& x : tables_) f(x);",
                     "for (int i = 0; i < n ? a : table_; ++i) f(i);"):
            self.assertEqual(rules("a.cc", MAP + loop + "\n"), [], loop)
        self.assertEqual(rules("a.cc", "std::map<int, int> m;\nfor (auto& x : m) f(x);\n"), [])


class Command(unittest.TestCase):
    def run_in(self, files, arguments=()):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder).resolve()
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            (root / "tools").mkdir(exist_ok=True)
            script = root / "tools" / "tidy.py"
            script.write_bytes(pathlib.Path(tidy.__file__).read_bytes())
            result = subprocess.run([sys.executable, script, *[a.format(root=root) for a in arguments]],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            return result.returncode, result.stdout

    def test_names_file_line_rule_found_and_expected(self):
        status, output = self.run_in({"core/a.cc": "int a;\nint b = rand();\n", "core/good.cc": "int a;\n"})
        self.assertEqual(output, "core/a.cc:2: random: found rand(, expected the project's own seeded generator\n")
        self.assertEqual(status, 1)

    def test_whole_project_without_what_was_built(self):
        bad = {f + "/a.cc": "\t\n" for f in (".git", "bazel-out", "out", "__pycache__/.x")}
        self.assertEqual(self.run_in({**bad, "core/a.cc": "int a;\n", "a.bin": "\t"}), (0, ""))
        status, output = self.run_in({"core/out/a.cc": "\t\n", ".ci/run": "#!/bin/sh\n\ttrue\n"})
        self.assertEqual((status, [line.split(" ")[0] for line in output.splitlines()]),
                         (1, [".ci/run:2:", "core/out/a.cc:1:", "core/out/a.cc:1:"]))

    def test_rules_of_the_whole_project(self):
        files = {"core/a.cc": 'throw Error({"C01"});\n', "core/a_test.cc": 'f("C02");\n', "docs/rules.md": RuleIds.PAGE,
                 "core/a.h": HEADER.format("int a();")}
        self.assertEqual(self.run_in(files), (0, ""))
        del files["docs/rules.md"]
        status, output = self.run_in(files)
        self.assertEqual((status, output.split(",")[0]), (1, "core/a.cc:1: rule-id: found C01"))
        self.assertEqual(self.run_in(files, ["{root}/core/a.cc"]), (0, ""))

    def test_given_files_and_wrong_usage(self):
        files = {"core/a.cc": "rand();\n", "core/b.cc": "int b;\n"}
        self.assertEqual(self.run_in(files, ["{root}/core/b.cc"])[0], 0)
        self.assertEqual(self.run_in(files, ["{root}/core/a.cc"])[0], 1)
        self.assertEqual(self.run_in(files, ["{root}/core/c.cc"])[0], 64)
        self.assertEqual(self.run_in(files, ["--fast"])[0], 64)
        self.assertEqual(self.run_in(files, ["--help"])[0], 0)


if __name__ == "__main__":
    unittest.main()
