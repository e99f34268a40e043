#!/usr/bin/env python3
"""Runs the probes as their users do: verdicts and exit codes, records, bad use."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = pathlib.Path("probes/probes").absolute()
FIELDS = {"schema", "probe", "question", "execution", "found", "expected", "verdict"}
SLOT_MODES = {"placement", "arena", "checkpoint"}
EXECUTIONS = {"alias": SLOT_MODES | {"eager", "native"}, "staging": SLOT_MODES}
# Defects of core that a probe shows. One that is repaired must leave this list.
KNOWN = {
    "alias": set(),
    "staging": set(),
}


def run(*arguments, folder=None):
    environment = dict(os.environ)
    environment.pop("BUILD_WORKING_DIRECTORY", None)
    if folder:
        environment["BUILD_WORKING_DIRECTORY"] = folder
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, env=environment)


class Probes(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def records(self, name, out):
        lines = (pathlib.Path(out) / f"{name}.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def test_all_probes_hold_but_for_known_defects(self):
        result = run("all", "--out", self.folder)
        expected = 1 if any(KNOWN.values()) else 0
        self.assertEqual(result.returncode, expected, result.stdout + result.stderr)
        for name, executions in EXECUTIONS.items():
            rows = self.records(name, self.folder)
            violated = {row["question"] for row in rows if row["verdict"] == "violated"}
            self.assertEqual(violated, KNOWN[name], result.stdout)
            self.assertEqual({row["execution"] for row in rows}, executions)
            self.assertIn(f"{name}: {len(rows)} rows", result.stdout)
            for row in rows:
                self.assertEqual(set(row), FIELDS)
                self.assertEqual((row["schema"], row["probe"]), (1, name))
                equal = row["found"] == row["expected"]
                self.assertEqual(row["verdict"], "holds" if equal else "violated")

    def test_exit_code_is_that_of_the_chosen_probe(self):
        for name, known in KNOWN.items():
            self.assertEqual(run(name, "--out", self.folder).returncode, 1 if known else 0)

    def test_runs_repeat_exactly(self):
        for out in ("a", "b"):
            run("all", "--out", f"{self.folder}/{out}")
        for name in EXECUTIONS:
            self.assertEqual(self.records(name, f"{self.folder}/a"), self.records(name, f"{self.folder}/b"))

    def test_the_default_folder_lies_where_the_caller_is(self):
        run("staging", folder=self.folder)
        self.assertTrue(self.records("staging", f"{self.folder}/slotgraph-out/probes"))

    def test_list_and_help(self):
        listed = run("list")
        self.assertEqual(listed.returncode, 0)
        self.assertEqual([line.split()[0] for line in listed.stdout.splitlines()], list(EXECUTIONS))
        told = run("--help")
        self.assertEqual(told.returncode, 0)
        for word in ("list", "all", "--out", "Exit codes", "bazel run //:probes"):
            self.assertIn(word, told.stdout)

    def test_wrong_use(self):
        for arguments in ((), ("--nonsense",), ("alias", "staging"), ("alias", "--out"), ("nothing-near",)):
            result = run(*arguments, folder=self.folder)
            self.assertEqual(result.returncode, 64, arguments)
            self.assertTrue(result.stderr, arguments)
        self.assertEqual(os.listdir(self.folder), [])
        self.assertIn("did you mean: alias", run("alais").stderr)
        self.assertIn("did you mean: staging", run("stag").stderr)

    def test_output_that_cannot_be_written(self):
        file = pathlib.Path(self.folder) / "file"
        file.write_text("")
        result = run("staging", "--out", str(file))
        self.assertEqual(result.returncode, 74, result.stderr)
        self.assertIn("F03", result.stderr)


if __name__ == "__main__":
    unittest.main()
