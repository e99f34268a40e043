#!/usr/bin/env python3
"""Reproducers, run and shrunk as users do: a failure that the product itself has, one that is gone, bad folders."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

REPRO = pathlib.Path("fuzz/repro/repro").absolute()
SHRINK = pathlib.Path("fuzz/shrink/shrink").absolute()
FOLDER = pathlib.Path("fuzz/repro/testdata/device_guard").absolute()


def run(program, *arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True)


class Reproducers(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.folder = pathlib.Path(self.temporary.name) / "folder"
        self.folder.mkdir()
        for name in ("experiment.json", "manifest.json"):
            (self.folder / name).write_bytes((FOLDER / name).read_bytes())

    def tearDown(self):
        self.temporary.cleanup()

    def edit(self, name, change):
        path = self.folder / name
        document = json.loads(path.read_text())
        change(document)
        path.write_text(json.dumps(document))

    # libtorch ends the process if a device guard cannot ask for the device: the failure of the folder.
    def test_a_failure_is_reproduced_and_shrunk(self):
        result = run(REPRO, self.folder)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn("\nreproduced\n", result.stdout)
        self.assertRegex(result.stdout, r"(bazel run //:shrink --|\./run\.sh shrink) ")
        result = run(SHRINK, self.folder)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        shrunk = json.loads((self.folder / "shrunk/experiment.json").read_text())
        self.assertEqual(len(shrunk["case"]["layers"]), 1)
        self.assertEqual(len(shrunk["case"]["plan"]["cp_sizes"]), 1)
        self.assertLessEqual(len(shrunk["case"]["schedule"]["variants"]), 2)
        self.assertEqual(run(REPRO, self.folder / "shrunk").returncode, 1)
        for name in ("manifest.json", "reproducer_test.cc", "BUILD", "repro.sh"):
            self.assertTrue((self.folder / "shrunk" / name).exists(), name)

    # The test in the folder, built from what an earlier run has written.
    def test_the_generated_test_fails_as_the_experiment_does(self):
        result = subprocess.run([FOLDER / "reproducer_test"], capture_output=True, text=True)
        self.assertEqual(result.returncode, -6, result.stdout + result.stderr)
        self.assertIn("terminate called", result.stderr)

    def test_a_failure_that_is_gone_is_told(self):
        self.edit("experiment.json", lambda experiment: experiment["injection"].update(point="staging", phase="layout",
                                                                                        nth=1))
        result = run(REPRO, self.folder)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("not reproduced", result.stdout)
        self.assertEqual(run(SHRINK, self.folder).returncode, 2)

    def test_a_fault_point_that_is_not_reached_says_nothing(self):
        self.edit("experiment.json", lambda experiment: experiment["injection"].update(nth=1000000))
        result = run(REPRO, self.folder)
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        self.assertIn("not reached", result.stdout)

    def test_another_failure_is_told(self):
        other = {"signature": "equality, arena, output #"}
        self.edit("manifest.json", lambda manifest: manifest["observation"].update(other))
        result = run(REPRO, self.folder)
        self.assertEqual(result.returncode, 1)
        self.assertIn("another failure", result.stdout)

    def test_a_budget_ends_the_shrinking(self):
        result = run(SHRINK, self.folder, "--budget", "2")
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        self.assertIn("budget is spent", result.stdout)

    def test_wrong_folders_are_refused_with_advice(self):
        for program in (REPRO, SHRINK):
            for arguments in ([], ["--no-such-flag"], [self.folder / "none"]):
                self.assertEqual(run(program, *arguments).returncode, 64, arguments)
        (self.folder / "experiment.json").write_text('{"case": ')
        result = run(REPRO, self.folder)
        self.assertEqual(result.returncode, 64)
        self.assertIn("experiment.json", result.stderr)
        self.edit("manifest.json", lambda manifest: manifest.update(slotgraph="0.1"))
        result = run(REPRO, self.folder)
        self.assertEqual(result.returncode, 64)
        self.assertIn("found version 0.1", result.stderr)
        self.assertIn("check out", result.stderr)


if __name__ == "__main__":
    unittest.main()
