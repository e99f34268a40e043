#!/usr/bin/env python3
"""Runs the plan tool as its users do: every command, exit codes, files, bad input, the picture."""
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

PROGRAM = pathlib.Path("core/plan/tool/tool").absolute()
PLANS = pathlib.Path("core/plan/testdata").absolute()
SCHEDULES = pathlib.Path("core/order/testdata").absolute()
SHAPE = {"pipeline_size": 2, "pipeline_rank": 0, "virtual_stages": 2, "microbatch_group_size": 2,
         "layers_per_chunk": [1, 2], "cp_sizes": [2, 1], "max_microbatches": 8}
SVG = "{http://www.w3.org/2000/svg}"


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)


class Tool(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.path = pathlib.Path(self.folder.name)
        self.shape = self.file("shape.json", SHAPE)

    def tearDown(self):
        self.folder.cleanup()

    def file(self, name, content):
        path = self.path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def make(self, *flags, name="plan.json"):
        result = run("make", self.shape, "--out", self.path / name, *flags)
        self.assertEqual(result.returncode, 0, result.stderr)
        return self.path / name

    def expect(self, code, text, *arguments):
        result = run(*arguments)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        self.assertIn(text, result.stdout + result.stderr)
        return result

    def test_a_plan_is_made_and_holds(self):
        plan = self.make()
        self.expect(0, "holds; 24 branches, ring 4, capabilities []", "check", plan)
        document = json.loads(plan.read_text())
        self.assertEqual(document["schema"], 1)
        self.assertEqual(document["capabilities"], [])
        self.assertEqual(run("make", self.shape).stdout, plan.read_text(), "the same twice, and without --out")
        self.assertEqual(plan.read_text(), json.dumps(document, sort_keys=True, separators=(",", ":")) + "\n")

    def test_variants_of_plans_hold(self):
        for flags in (["--ring", "6"], ["--counts", "legal"], ["--pack", "--sizes", "skewed", "--seed", "3"],
                      ["--mode", "public"], ["--rings", "6"]):
            self.expect(0, "holds", "check", self.make(*flags))
        sizes = self.file("bytes.json", [[100], [7, 30]])
        self.expect(0, "holds", "check", self.make("--pack", "--bytes", sizes))
        self.expect(64, "[PK1]", "make", self.shape, "--bytes", self.file("none.json", []))

    def test_a_public_plan_without_the_capture_order_is_refused(self):
        plan = self.path / "published.json"
        result = run("make", PLANS / "p2v2n4-l1-k1.r0.json", "--mode", "public", "--out", plan)
        self.assertIn("mode public", result.stderr)
        self.expect(1, "[PL04]", "check", plan)
        self.expect(0, "holds", "check", PLANS / "p2v2n4-l1-k1.r0.json")

    def test_a_changed_plan_is_noticed(self):
        plan = self.make()
        document = json.loads(plan.read_text())
        document["plan"]["slots"][0][0] = 3
        self.expect(64, "[H03]", "check", self.file("changed.json", document))
        self.expect(1, "[PL03]", "check", self.file("bare.json", document["plan"]))

    def test_two_plans_agree_or_say_what_differs(self):
        plan, other = self.make(), self.make("--ring", "5", name="other.json")
        self.expect(0, "the same plan", "check", plan, plan)
        self.expect(1, "[H03]", "check", plan, other)
        self.expect(1, "[H04]", "check", plan, other, "--pipeline")
        rank = self.path / "rank1.json"
        run("make", self.file("rank1_shape.json", {**SHAPE, "pipeline_rank": 1}), "--out", rank)
        self.expect(1, "[H03]", "check", plan, rank)
        self.expect(0, "fits into one pipeline", "check", plan, rank, "--pipeline")

    def test_frames_are_explained(self):
        plan = self.make()
        self.expect(0, "they must not share", "explain", plan, "0,0,0", "0,1,0")
        self.expect(0, "They are one frame", "explain", plan, "0,0,0", "0,0,0")
        self.expect(0, "They share", "explain", plan, "1,0,0", "1,2,0")
        self.expect(64, "[T04]", "explain", self.shape, "0,0,0", "0,1,0")
        self.expect(64, "[T04]", "make", plan)
        self.expect(64, "[T05]", "explain", plan, "0,0,0", "0,9,0")
        self.expect(64, "[T05]", "explain", plan, "0,0,0", "0,0")
        self.expect(64, "[T05]", "explain", plan, "0,0,0", "0,0,0x")

    def test_the_picture_has_every_frame_once_and_no_two_at_one_place(self):
        picture = self.path / "plan.svg"
        self.expect(0, "written", "draw", self.make(), "--out", picture, "--sizes", "uniform", "--microbatches", "6")
        root = xml.etree.ElementTree.parse(picture).getroot()
        bars = [bar for bar in root.iter(SVG + "rect") if bar.get("class") == "frame"]
        self.assertEqual(len(bars), 6 * 3, "microbatches times layers")
        rows = collections.defaultdict(list)
        for bar in bars:
            self.assertTrue(bar.find(SVG + "title").text.startswith("chunk "))
            rows[bar.get("y")].append((float(bar.get("x")), float(bar.get("width"))))
            self.assertLessEqual(float(bar.get("x")) + float(bar.get("width")), float(root.get("width")))
        for row in rows.values():
            row.sort()
            for (x, width), (following, _) in zip(row, row[1:]):
                self.assertLessEqual(x + width, following)
        gradients = [bar for bar in root.iter(SVG + "rect") if bar.get("class") == "gradient"]
        self.assertEqual(len(gradients), 6 * 2, "one for each backward")
        self.expect(64, "[T02]", "draw", self.make(), "--microbatches", "5")

    def test_public_results_are_compared(self):
        self.expect(0, "104 equal, 0 different", "compare", PLANS)
        self.expect(0, "251 equal, 0 different", "schedules", SCHEDULES)
        self.expect(64, "[T03]", "compare", self.path / "nowhere")
        self.expect(64, "[T03]", "compare", self.path)
        self.expect(64, "[J01]", "schedules", self.path)

    def test_a_batch_is_scheduled_by_both_schedulers(self):
        batch = json.loads((SCHEDULES / "schedules.jsonl").read_text().splitlines()[0])
        file = self.file("batch.json", batch)
        excess = {}
        for scheduler in ("greedy", "balanced"):
            result = self.expect(0, scheduler + ":", "schedule", file, "--scheduler", scheduler)
            found = json.loads(result.stdout)["microbatches"]
            samples = sorted(sample for groups in found for _, _, each in groups for sample in each)
            self.assertEqual(samples, list(range(len(batch["lengths"]))))
            excess[scheduler] = float(re.search(r"\(([+-][0-9.]+) %\)", result.stderr).group(1))
            if scheduler == "greedy":
                self.assertEqual(found, batch["microbatches"], "as the public scheduler decides")
        self.assertGreaterEqual(excess["balanced"], 0)
        self.assertLess(excess["balanced"], excess["greedy"])
        del batch["lengths"]
        self.expect(64, "no field `lengths`", "schedule", self.file("batch.json", batch))
        self.expect(64, "DC2", "schedule", self.file("batch.json", {**batch, "lengths": [1 << 30]}))
        self.expect(64, "balanced", "schedule", file, "--scheduler", "best")

    def test_differences_are_found(self):
        shutil.copy(PLANS / "p2-l2-k2.r0.json", self.path / "same.json")
        plan = json.loads((PLANS / "p2v2n2-l1-k2.r0.json").read_text())
        plan["slots"][3][0] = 0
        plan["published_microbatch_limit"] = 10
        self.file("changed.json", plan)
        result = self.expect(1, "1 equal, 1 different", "compare", self.path)
        self.assertIn("changed.json: published_microbatch_limit, slots", result.stdout)
        lines = (SCHEDULES / "schedules.jsonl").read_text().splitlines()
        schedule = json.loads(lines[0])
        schedule["microbatches"][0][0][2].reverse()
        self.file("schedules.jsonl", json.dumps(schedule) + "\n" + lines[1] + "\n")
        refused = json.loads((SCHEDULES / "refused.jsonl").read_text().splitlines()[0])
        refused["lengths"] += [100] * 50
        self.file("refused.jsonl", refused)
        self.expect(1, "1 equal, 2 different", "schedules", self.path)

    def test_bad_input_names_the_place_and_writes_nothing(self):
        out = self.path / "out.json"
        cases = {
            "[J02]": '{"pipeline_size": 2',
            "[J03]": {key: value for key, value in SHAPE.items() if key != "cp_sizes"},
            "[J04]": {**SHAPE, "layers_per_chunk": [1, "x"]},
            "[OP1]": {**SHAPE, "pipeline_rank": 7},
            "[OC1]": {**SHAPE, "max_microbatches": 7},
            "[PL00]": {**SHAPE, "cp_sizes": [1, 2]},
        }
        for rule, shape in cases.items():
            self.expect(64, rule, "make", self.file("bad.json", shape), "--out", out)
        self.expect(64, "[PL14]", "make", self.shape, "--ring", "2", "--out", out)
        self.expect(64, "[PK1]", "make", self.shape, "--bytes", self.file("few.json", [[1]]), "--out", out)
        self.expect(64, "[J01]", "make", self.path / "missing.json", "--out", out)
        self.expect(74, "[F03]", "make", self.shape, "--out", "/proc/no/plan.json")
        self.assertFalse(out.exists())

    def test_hostile_files_are_refused_at_once(self):
        deep = self.file("deep.json", "[" * 200000)
        for arguments in (["make", deep], ["check", deep], ["make", self.shape, "--bytes", deep]):
            self.expect(64, "[J02]", *arguments)
        self.expect(64, "[J02]", "make", self.file("number.json", "1e999"))
        self.expect(64, "[J05]", "make", self.file("extra.json", {**SHAPE, "max_microbatch": 8}))
        plan = json.loads(self.make().read_text())["plan"]
        wrapped = {**plan, "virtual_stages": 70000, "layers_per_chunk": [16384] * 70000}
        self.expect(1, "[PL00]", "check", self.file("wrapped.json", wrapped))
        longer = {**plan, "base_order": plan["base_order"] * 3}
        self.expect(1, "[PL00]", "check", self.file("longer.json", longer))
        document = {**json.loads(self.make().read_text()), "capabilities": ["nonsense"]}
        self.expect(64, "[H02]", "check", self.file("capable.json", document))
        self.expect(64, "[T05]", "explain", self.make(), "4294967296,0,0", "0,1,0")
        many = {**SHAPE, "virtual_stages": 20000, "layers_per_chunk": [1024] * 20000}
        self.expect(64, "[PL00]", "make", self.file("many.json", many))
        wide = {"pipeline_size": 2000, "pipeline_rank": 0, "virtual_stages": None, "microbatch_group_size": None,
                "layers_per_chunk": [1], "cp_sizes": [1], "max_microbatches": 2000}
        self.expect(0, "2000 frames", "make", self.file("wide.json", wide), "--out", self.path / "wide-plan.json")
        with open("/dev/full", "w") as full:
            result = subprocess.run([PROGRAM, "make", self.shape], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 74, result.stderr)

    def test_wrong_flags_are_usage_errors(self):
        for arguments in ([], ["nonsense"], ["make"], ["make", self.shape, "--mode", "x"],
                          ["make", self.shape, "--ring", "-1"], ["draw", self.shape, "extra"],
                          ["explain", self.shape], ["make", self.shape, "--mode", "public", "--pack"],
                          ["make", self.shape, "--slots", "first-free"],
                          ["make", self.shape, "--rings", "2"], ["make", self.shape, "--seed", "-1"]):
            self.assertEqual(run(*arguments).returncode, 64, arguments)
        self.assertEqual(run("--help").returncode, 0)
        self.assertIn("Examples", run("--help").stdout)


if __name__ == "__main__":
    unittest.main()
