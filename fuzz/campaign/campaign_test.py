#!/usr/bin/env python3
"""Runs the campaign program as its users do: exit codes, files, bad input, interruption, determinism."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

PROGRAM = pathlib.Path("fuzz/campaign/campaign").absolute()
SMALL = ["--filter", "p2-l2-k2"]


def run(*arguments, out, environment=None):
    command = [PROGRAM, "--out", out, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(environment or {})})


def records(out):
    lines = [line for file in pathlib.Path(out).glob("records-*.jsonl") for line in file.read_text().splitlines()]
    return sorted(lines, key=lambda line: json.loads(line)["index"])


def children(parent):
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        if int(fields[1]) == parent:
            yield int(stat.parent.name)


class Campaign(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.out = self.folder.name + "/out"

    def tearDown(self):
        self.folder.cleanup()

    def case_file(self):
        return pathlib.Path("fuzz/campaign/testdata/case.json").absolute()

    def test_records_do_not_depend_on_the_number_of_jobs(self):
        runs = []
        for jobs in ("1", "2"):
            result = run("--cases", "4", "--jobs", jobs, "--again", "2", *SMALL, out=self.out + jobs)
            self.assertEqual(result.returncode, 0, result.stderr)
            runs.append(records(self.out + jobs))
        self.assertEqual(len(runs[0]), 4)
        self.assertEqual(runs[0], runs[1])
        summary = json.loads(pathlib.Path(self.out + "1/summary.json").read_text())
        self.assertEqual(summary["cases"] + summary["skipped"], 4)
        self.assertEqual(summary["verdicts"], {"holds": summary["cases"], "violated": 0, "flaky": 0, "unknown": 0})
        self.assertGreater(summary["tensors_compared"], 0)
        self.assertEqual(summary["again"], {"cases": 2, "differ": 0})

    def test_wrong_flags_are_usage_errors(self):
        for flags in (["--nonsense"], ["--jobs", "0"], ["--seed", "x"], ["--cases", "0", "--seconds", "0"],
                      ["--seconds", "-1"], ["--filter", "no such plan"], ["--jobs", "99999999999"]):
            result = run(*flags, out=self.out)
            self.assertEqual(result.returncode, 64, (flags, result.stderr))
            self.assertTrue(result.stderr.strip(), flags)
        self.assertEqual(run("--help", out=self.out).returncode, 0)

    def test_a_case_file_runs_and_bad_ones_are_refused_by_name(self):
        good = self.case_file().read_text()
        result = run("--case", self.case_file(), out=self.out)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("holds", result.stdout)
        bad = pathlib.Path(self.folder.name) / "bad.json"
        unknown_block = good.replace('"mlp"', '"no such block"', 1)
        for text in ("", good[: len(good) // 2], "[]", "{}", good.replace('"schema": 3', '"schema": 99'), unknown_block,
                     good.replace('"seed": 5', '"seed": NaN'), good.replace('"hidden": 16', '"hidden": 1e99')):
            bad.write_text(text)
            result = run("--case", bad, out=self.out)
            self.assertEqual(result.returncode, 64, (text[:40], result.stdout, result.stderr))
            self.assertIn("expected", result.stderr)
        self.assertEqual(run("--case", self.folder.name + "/absent.json", out=self.out).returncode, 64)
        self.assertEqual(run("--case", self.folder.name, out=self.out).returncode, 64)
        self.assertFalse(os.path.exists(self.out))

    def test_a_folder_that_cannot_be_written_is_an_input_output_error(self):
        result = run("--cases", "1", *SMALL, out="/proc/no/such/folder")
        self.assertEqual(result.returncode, 74, result.stderr)
        occupied = pathlib.Path(self.folder.name) / "occupied"
        occupied.write_text("")
        self.assertEqual(run("--cases", "1", *SMALL, out=str(occupied)).returncode, 74)

    def test_termination_ends_cleanly_with_whole_files(self):
        process = subprocess.Popen([PROGRAM, "--out", self.out, "--seconds", "600", *SMALL], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True)
        while not pathlib.Path(self.out).exists() or not records(self.out):
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        process.communicate()
        self.assertEqual(process.returncode, 3)
        self.assertEqual(json.loads(pathlib.Path(self.out + "/summary.json").read_text())["verdicts"]["violated"], 0)

    def test_a_worker_that_is_killed_leaves_an_unknown_case_with_its_file(self):
        command = [PROGRAM, "--out", self.out, "--cases", "30", "--seconds", "0", "--jobs", "1", *SMALL]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        while not pathlib.Path(self.out).exists() or not records(self.out):
            self.assertIsNone(process.poll())
        for child in children(process.pid):
            os.kill(child, signal.SIGKILL)
        output, _ = process.communicate()
        self.assertEqual(process.returncode, 2, output)
        self.assertRegex(output, r"reproduce: (bazel run //:campaign --|\./run\.sh campaign) --case")
        unknown = [json.loads(line) for line in records(self.out) if json.loads(line)["verdict"] == "unknown"]
        lost = [record for record in unknown if not record["skipped"]]
        self.assertEqual(len(lost), 1)
        again = run("--case", lost[0]["case_file"], out=self.out)
        self.assertEqual(again.returncode, 0, again.stdout + again.stderr)


if __name__ == "__main__":
    unittest.main()
