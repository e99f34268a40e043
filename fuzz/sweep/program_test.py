#!/usr/bin/env python3
"""Runs the sweep program as its users do: published failure points, exit codes, files, bad input, interruption."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

PROGRAM = pathlib.Path("fuzz/sweep/sweep").absolute()


def run(*arguments, out):
    return subprocess.run([PROGRAM, "--out", out, *arguments], capture_output=True, text=True)


class Sweep(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.out = self.folder.name + "/out"

    def tearDown(self):
        self.folder.cleanup()

    def summary(self):
        return json.loads(pathlib.Path(self.out, "summary.json").read_text())

    def trials(self):
        return [json.loads(line) for line in pathlib.Path(self.out, "trials.jsonl").read_text().splitlines()]

    def file(self, name, text):
        path = pathlib.Path(self.folder.name) / name
        path.write_text(text)
        return path

    # The failure points of the published runtime: partial detach, before the setter, after it has changed the pool.
    def test_published_failure_points_are_rolled_back(self):
        for step in ("owner_detach", "before_setter", "after_setter", "adoption", "switch_checked"):
            result = run("--mode", "checkpoint", "--points", step + "@switch_pool", out=self.out)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            summary = self.summary()
            self.assertTrue(summary["complete"])
            self.assertGreater(summary["points_reached"], 1, step)
            self.assertEqual(summary["outcomes"].get("recovered"), summary["points_reached"])

    # A failure while a failure is rolled back may end the process, with the documented code and message only.
    def test_pairs_reach_the_rollback(self):
        result = run("--mode", "checkpoint", "--fault", "pair", "--sample", "2", "--points", "after_setter",
                     out=self.out)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertGreater(self.summary()["outcomes"].get("fatal", 0), 0)
        self.assertGreater(self.summary()["outcomes"].get("recovered", 0), 0)

    def test_a_lost_device_ends_the_worker_and_not_the_sweep(self):
        result = run("--mode", "placement", "--fault", "sticky", "--points", "cudaGraphLaunch", out=self.out)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        summary = self.summary()
        self.assertEqual(summary["outcomes"].get("sticky"), summary["points_reached"])

    # A device that has room for one segment more each time.
    def test_a_device_runs_out_of_memory_at_every_size(self):
        result = run("--mode", "arena", "--fault", "capacity", out=self.out)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        summary = self.summary()
        self.assertTrue(summary["complete"])
        self.assertGreater(summary["outcomes"].get("recovered", 0), 0)
        self.assertEqual(summary["outcomes"].get("not_reached"), 1)

    def test_rules_run_what_they_say(self):
        rules = [{"point": "module_forward", "phase": "warm_up", "nth": 2, "fault": "once", "second": 0}]
        result = run("--rules", self.file("rules.json", json.dumps(rules)), "--jobs", "1", out=self.out)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertEqual([(trial["mode"], trial["error"]) for trial in self.trials()],
                         [(mode, "injected at step module_forward") for mode in ("placement", "arena", "checkpoint")])

    def test_wrong_input_is_refused_with_advice(self):
        empty = self.file("empty.json", "")
        rule = self.file("rule.json", json.dumps(
            [{"point": "module_foward", "phase": "*", "nth": 1, "fault": "once", "second": 0}]))
        for arguments, text in ((["--points", "cudaMaloc"], "cudaMalloc"), (["--fault", "never"], "once"),
                                (["--mode", "fast"], "placement"), ([empty], "empty.json"),
                                ([self.folder.name + "/none.json"], "none.json"), (["--rules", empty], "empty.json"),
                                (["--rules", rule], "module_forward"), (["--no-such-flag"], "--no-such-flag")):
            result = run(*arguments, out=self.out)
            self.assertEqual(result.returncode, 64, f"{arguments}: {result.stderr}")
            self.assertIn(text, result.stderr + result.stdout)

    def test_help_and_list_teach(self):
        result = run("--help", out=self.out)
        self.assertEqual(result.returncode, 0)
        self.assertIn("bazel run //:sweep", result.stdout)
        listed = run("--list", out=self.out)
        self.assertEqual(listed.returncode, 0)
        self.assertIn("owner_detach", listed.stdout)

    def test_a_folder_that_cannot_be_written_ends_with_74(self):
        self.assertEqual(run("--points", "staging", out="/proc/none").returncode, 74)

    def test_an_interruption_ends_cleanly(self):
        with subprocess.Popen([PROGRAM, "--out", self.out], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            trials = pathlib.Path(self.out, "trials.jsonl")
            while not trials.exists() or not trials.stat().st_size:
                self.assertIsNone(process.poll())
                os.sched_yield()
            process.send_signal(signal.SIGINT)
            process.communicate()
        self.assertEqual(process.returncode, 3)
        self.assertFalse(self.summary()["complete"])


if __name__ == "__main__":
    unittest.main()
