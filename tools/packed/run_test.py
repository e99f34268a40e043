#!/usr/bin/env python3
"""run.py of a packed folder, on a machine without a GPU."""
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path("tools/packed/run.py").absolute()


class Run(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.folder = pathlib.Path(self.temporary.name)
        shutil.copy(SOURCE, self.folder)
        self.programs = {"campaign": {"path": "campaign", "arguments": []}}
        self.pack([])

    def tearDown(self):
        self.temporary.cleanup()

    def pack(self, tests):
        (self.folder / "packed.json").write_text(json.dumps(
            {"torch": "2.11.0", "cuda": "13.0", "programs": self.programs, "tests": tests}))

    def run_it(self, *arguments, packages=None):
        values = dict(os.environ, PYTHONPATH=str(packages or ""))
        return subprocess.run([sys.executable, "-S", str(self.folder / "run.py"), *arguments], env=values,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder)

    def torch(self, version, cuda):
        packages = self.folder / "packages"
        (packages / "torch").mkdir(parents=True)
        (packages / "torch" / "__init__.py").write_text("")
        (packages / "torch" / "version.py").write_text(
            f"__version__ = '{version}'\ncuda: Optional[str] = '{cuda}'\n")
        return packages

    def test_help_and_unknown_commands(self):
        self.assertEqual(self.run_it("--help").returncode, 0)
        self.assertIn("usage: ./run.sh", self.run_it().stdout)
        result = self.run_it("campain")
        self.assertEqual(result.returncode, 64)
        self.assertIn("found 'campain', expected one of tests, campaign", result.stderr)

    def test_what_this_machine_lacks_is_unknown(self):
        result = self.run_it("campaign")
        self.assertEqual(result.returncode, 2)
        self.assertIn("expected torch 2.11.0", result.stderr)
        result = self.run_it("tests", packages=self.torch("2.10.0+cu128", "12.8"))
        self.assertEqual(result.returncode, 2)
        self.assertIn("found torch 2.10.0+cu128 for CUDA 12.8", result.stderr)

    def test_verdicts_are_those_of_the_exit_codes(self):
        tests = []
        for code in (0, 1, 2):
            path = self.folder / f"exit{code}"
            path.write_text(f"#!/bin/sh\necho '[  FAILED  ] Suite.Case (3 ms)'\nexit {code}\n")
            path.chmod(0o755)
            tests.append({"name": f"//:exit{code}", "path": path.name, "arguments": [], "environment": {},
                          "timeout": 60})
        spec = importlib.util.spec_from_file_location("run", self.folder / "run.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        out = self.folder / "out"
        code = module.run_tests(["--out", str(out), "--jobs", "2"], {"tests": tests}, dict(os.environ))
        self.assertEqual(code, 1)
        records = [json.loads(line) for line in (out / "tests.jsonl").read_text().splitlines()]
        self.assertEqual({record["test"]: record["verdict"] for record in records},
                         {"//:exit0": "holds", "//:exit1": "violated", "//:exit2": "unknown"})
        self.assertEqual(records[0]["failed"], ["Suite.Case"])
        self.assertEqual(module.run_tests(["--filter", "exit2", "--out", str(out)], {"tests": tests},
                                          dict(os.environ)), 2)
        self.assertEqual(module.run_tests(["--filter", "nothing"], {"tests": tests}, dict(os.environ)), 64)


if __name__ == "__main__":
    unittest.main()
