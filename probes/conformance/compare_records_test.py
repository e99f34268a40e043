#!/usr/bin/env python3
"""compare_records.py notices what must be noticed."""
import json
import pathlib
import subprocess
import tempfile
import unittest

RECORD = {"index": 0, "case_seed": 1, "case_digest": "a", "plan": "p", "schedule": "s", "skipped": False,
          "wrapped": True, "mixed": True, "equal_tokens": False, "verdict": "holds", "microbatches": 8,
          "frames_captured": 4, "replays": 16, "tensors_compared": 32, "bytes_compared": 64, "value_digest": "v",
          "layout_digest": "l"}


class CompareRecords(unittest.TestCase):
    def compare(self, first, second):
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for name, records in (("a", first), ("b", second)):
                paths.append(pathlib.Path(folder, name))
                paths[-1].write_text("".join(json.dumps(record) + "\n" for record in records))
            return self.run_it(str(paths[0]), "--with", str(paths[1]))

    def run_it(self, *arguments):
        return subprocess.run(["probes/conformance/compare_records.py", *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)

    def test_values_may_differ_and_layouts_are_counted(self):
        result = self.compare([RECORD], [dict(RECORD, value_digest="w")])
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("1 cases, 32 tensors, 0 differ", result.stdout)
        result = self.compare([RECORD], [dict(RECORD, layout_digest="m")])
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("layouts: 0 equal, 1 where kernels allocate otherwise\n  p: 1", result.stdout)

    def test_anything_else_must_be_equal(self):
        for change in ({"verdict": "violated"}, {"tensors_compared": 31}, {"case_digest": "b"}, {"replays": 15}):
            result = self.compare([RECORD], [dict(RECORD, **change)])
            self.assertEqual(result.returncode, 1)
            self.assertIn("case 0, " + next(iter(change)), result.stdout)
        self.assertEqual(self.compare([RECORD], []).returncode, 1)

    def test_wrong_usage(self):
        for arguments in ([], ["a"], ["--with", "a"], ["/nonexistent", "--with", "/nonexistent"]):
            self.assertEqual(self.run_it(*arguments).returncode, 64)


if __name__ == "__main__":
    unittest.main()
