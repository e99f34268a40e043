#!/usr/bin/env python3
"""Runs the conformance programs as their users do: against the golden folder, spoilt ones, and with bad use."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

PROGRAM = pathlib.Path("probes/conformance/allocator_programs").absolute()
GOLDEN = pathlib.Path("probes/conformance/golden").absolute()
POLICIES = ["ascending", "descending", "seeded"]
PROGRAMS = 400


def run(*arguments, folder=None):
    environment = dict(os.environ)
    environment.pop("BUILD_WORKING_DIRECTORY", None)
    if folder:
        environment["BUILD_WORKING_DIRECTORY"] = folder
    command = [PROGRAM, *[str(argument) for argument in arguments]]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


class Conformance(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.out = self.folder / "out"

    def compare(self, golden, *arguments):
        return run("--out", self.out, "--compare", golden, *arguments)

    def spoilt(self, name, change):
        """A copy of the golden folder in which `change` has edited the lines of one file."""
        copy = self.folder / "golden"
        shutil.copytree(GOLDEN, copy, dirs_exist_ok=True)
        file = copy / name
        lines = file.read_text().splitlines()
        change(lines)
        file.unlink()
        file.write_text("".join(line + "\n" for line in lines))
        return copy

    def test_equal_to_the_golden_folder(self):
        result = self.compare(GOLDEN, "--programs", PROGRAMS)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        device = json.loads((GOLDEN / "summary.json").read_text())["device"]
        self.assertIn(f"compared with a run on {device['name']} ({device['instruction_set']})", result.stdout)
        compared, equal = [line.split(None, 1)[1] for line in result.stdout.splitlines()
                           if line.startswith(("compared  ", "equal"))]
        self.assertEqual(compared, equal)
        self.assertTrue(compared.startswith(f"{3 * PROGRAMS} programs, {3 * PROGRAMS * 300} operations, "), compared)
        summary = json.loads((self.out / "summary.json").read_text())
        self.assertEqual(summary["totals"]["programs"], 3 * PROGRAMS)
        for situation in ("out of memory", "refused", "restored", "reused", "released to allocate", "free waits",
                          "fault of cudaMalloc", "fault of cudaFree", "fault of cudaEventQuery"):
            self.assertGreater(summary["situations"].get(situation, 0), 10, situation)

    def test_the_golden_folder_is_whole(self):
        summary = json.loads((GOLDEN / "summary.json").read_text())
        self.assertGreaterEqual(summary["totals"]["programs"], 10000)
        self.assertGreaterEqual(summary["totals"]["operations"], 3000000)
        for policy in POLICIES:
            digests = (GOLDEN / f"digests-{policy}.txt").read_text().split()
            self.assertEqual(len(digests) * 3, summary["totals"]["programs"])
            self.assertIn("== program 16\n", (GOLDEN / f"logs-{policy}.txt").read_text())
        self.assertLess(sum(file.stat().st_size for file in GOLDEN.iterdir()), 2 << 20)

    def test_a_wrong_digest_is_noticed(self):
        def change(lines):
            lines[1] = lines[1][:-1] + ("0" if lines[1][-1] != "0" else "1")

        golden = self.spoilt("digests-descending.txt", change)
        result = self.compare(golden, "--programs", 3)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn("equal     8 programs", result.stdout)
        self.assertIn("first that differs: descending program 1", result.stdout)
        self.assertIn("the kept log is equal", result.stdout)

        logs = golden / "logs-descending.txt"
        lines = logs.read_text().splitlines()
        at = lines.index("== program 1") + 3
        right = lines[at]
        lines[at] += " cudaFree"
        logs.write_text("\n".join(lines) + "\n")
        told = self.compare(golden, "--programs", 3).stdout
        self.assertIn("descending program 1:\n  line 3 of the log\n", told)
        self.assertIn(f"  here:   {right}\n  golden: {right} cudaFree\n", told)

    def test_a_missing_program_is_noticed(self):
        golden = self.spoilt("digests-seeded.txt", lambda lines: lines.__delitem__(slice(2, None)))
        self.assertEqual(self.compare(golden, "--programs", 2).returncode, 0)
        result = self.compare(golden, "--programs", 3)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn("missing   1 programs", result.stdout)
        self.assertEqual(self.compare(golden, "--programs", 3, "--addresses", "ascending").returncode, 0)

    def test_results_do_not_depend_on_jobs(self):
        for jobs in (1, 3):
            result = run("--programs", 20, "--jobs", jobs, "--full", 20, "--out", self.folder / str(jobs))
            self.assertEqual(result.returncode, 0, result.stderr)
        names = sorted(os.listdir(self.folder / "1"))
        self.assertEqual(names, sorted(os.listdir(self.folder / "3")))
        self.assertEqual(len(names), 10)
        for name in names:
            self.assertEqual((self.folder / "1" / name).read_text(), (self.folder / "3" / name).read_text(), name)

    def test_records(self):
        self.assertEqual(run("--programs", 7, "--operations", 20, "--out", self.out).returncode, 0)
        for policy in POLICIES:
            records = [json.loads(line) for line in (self.out / f"programs-{policy}.jsonl").read_text().splitlines()]
            self.assertEqual([record["program"] for record in records], list(range(7)))
            digests = (self.out / f"digests-{policy}.txt").read_text().split()
            self.assertEqual([record["sha256"][:16] for record in records], digests)
            for record in records:
                self.assertEqual((record["policy"], record["operations"]), (policy, 20))
                self.assertGreater(record["events"], 0)
                self.assertGreater(record["calls"], 0)

    def test_what_is_written_can_be_compared_with(self):
        flags = ("--programs", 6, "--operations", 50, "--seed", 9)
        self.assertEqual(run(*flags, "--compact", "--out", self.folder / "first").returncode, 0)
        self.assertFalse(list((self.folder / "first").glob("programs-*")))
        result = self.compare(self.folder / "first", *flags)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_the_default_folder_lies_where_the_caller_is(self):
        self.assertEqual(run("--programs", 1, "--operations", 5, folder=self.folder).returncode, 0)
        self.assertTrue((self.folder / "slotgraph-out/conformance/summary.json").is_file())

    def test_wrong_use(self):
        for arguments in (("--nonsense",), ("--programs",), ("--programs", 0), ("--addresses", "random"), ("more",),
                          ("--compare", self.folder / "nowhere"), ("--compare", GOLDEN, "--seed", 2),
                          ("--compare", GOLDEN, "--operations", 5)):
            result = run(*arguments, folder=self.folder)
            self.assertEqual(result.returncode, 64, (arguments, result.stderr))
            self.assertTrue(result.stderr, arguments)
        self.assertEqual(os.listdir(self.folder), [])
        self.assertEqual(run("--help").returncode, 0)

    def test_output_that_cannot_be_written(self):
        file = self.folder / "file"
        file.write_text("")
        result = run("--programs", 1, "--operations", 5, "--out", file)
        self.assertEqual(result.returncode, 74, result.stderr)
        self.assertIn("F03", result.stderr)


if __name__ == "__main__":
    unittest.main()
