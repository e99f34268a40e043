#!/usr/bin/env python3
"""tools/count_tests.py on made-up runs: the events that Bazel writes, and the XML that GoogleTest and Bazel write."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import count_tests

GOOGLE_TEST = """<?xml version="1.0"?><testsuites tests="5"><testsuite name="Suite" tests="5">
<testcase name="Good" status="run" result="completed" classname="Suite" />
<testcase name="AlsoGood" status="run" result="completed" classname="Suite"><properties/></testcase>
<testcase name="Skipped" status="run" result="skipped" classname="Suite"><skipped message="" /></testcase>
<testcase name="DISABLED_Off" status="notrun" result="suppressed" classname="Suite" />
{}</testsuite></testsuites>"""
BAD = '<testcase name="Bad" status="run" classname="Suite"><failure message="a"/><failure message="b"/></testcase>'
SCRIPT = '<testsuites><testsuite name="t"><testcase name="t" status="run">{}</testcase></testsuite></testsuites>'


class Count(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        self.events = []

    def configured(self, label, **fields):
        self.events.append({"id": {"targetConfigured": {"label": label}}, "configured": fields})

    def target(self, label="//a:t", built=True):
        self.configured(label, testSize="SMALL")
        completed = {"completed": {"success": True} if built else {"failureDetail": {}}}
        self.events.append({"id": {"targetCompleted": {"label": label}}, **completed})

    def result(self, xml, label="//a:t", status="PASSED", **identity):
        outputs = [{"name": "test.log", "uri": "file:///none"}]
        if xml is not None:
            path = self.folder / f"{len(self.events)} test.xml"
            path.write_text(xml)
            outputs.append({"name": "test.xml", "uri": path.as_uri()})
        self.events.append({"id": {"testResult": {"label": label, **identity}},
                            "testResult": {"testActionOutput": outputs, "status": status}})

    def finished(self, code):
        self.events.append({"id": {"buildFinished": {}}, "finished": {"exitCode": {"code": code} if code else {}}})

    def check(self, passed, failed, filtered=()):
        found = count_tests.count(self.events)
        self.assertEqual((len(found[0]), found[1], found[2]), (passed, failed, list(filtered)))

    def test_cases_of_a_passing_target(self):
        self.target()
        self.result(GOOGLE_TEST.format(""))
        self.finished(0)
        self.check(2, [])

    def test_failed_case(self):
        self.target()
        self.result(GOOGLE_TEST.format(BAD), status="FAILED")
        self.finished(3)
        self.check(2, ["//a:t Suite.Bad"])

    def test_script(self):
        for label, inside, status in (("//a:t", "", "PASSED"), ("//a:u", '<error message="exited"/>', "FAILED")):
            self.target(label)
            self.result(SCRIPT.format(inside), label, status)
        self.finished(3)
        self.check(1, ["//a:u t"])

    def test_failure_after_the_last_case(self):
        self.target()
        self.result(GOOGLE_TEST.format(""), status="FAILED")
        self.finished(3)
        self.check(2, ["//a:t (FAILED, though no case failed)"])

    def test_no_or_broken_or_empty_xml(self):
        for xml, name in ((None, "no readable test.xml"), ("<testsuites>", "no readable test.xml"),
                          ("<testsuites/>", "no test case")):
            self.events = []
            self.target()
            self.result(xml)
            self.finished(0)
            self.check(0, [f"//a:t ({name})"])

    def test_every_shard_and_run_but_only_the_last_attempt(self):
        self.target()
        self.result(GOOGLE_TEST.format(BAD), status="FAILED", run=1, shard=1, attempt=1)
        self.result(GOOGLE_TEST.format(""), run=1, shard=1, attempt=2)
        self.result(GOOGLE_TEST.format(""), run=1, shard=2, attempt=1)
        self.result(GOOGLE_TEST.format(""), run=2, shard=1, attempt=1)
        self.finished(0)
        self.check(6, [])

    def test_target_that_was_not_built(self):
        self.target("//a:t")
        self.result(GOOGLE_TEST.format(""))
        self.target("//a:u", built=False)
        self.configured("//a:v", testSize="SMALL")
        self.finished(1)
        self.check(2, ["//a:u (not built)", "//a:v (not built)"])

    def test_target_that_a_tag_filter_left_out(self):
        self.target("//a:gpu")
        self.finished(0)
        self.check(0, [], ["//a:gpu"])

    def test_build_failure_outside_of_tests(self):
        self.target()
        self.result(GOOGLE_TEST.format(""))
        self.configured("//a:library")
        self.finished(1)
        self.check(2, ["bazel test (exit status 1, though no test failed)"])

    def test_bazel_that_did_not_finish(self):
        self.check(0, ["bazel test (exit status none: Bazel did not finish, though no test failed)"])

    def run_script(self, *arguments):
        script = pathlib.Path(count_tests.__file__)
        result = subprocess.run([sys.executable, script, *arguments], stdout=subprocess.PIPE, text=True)
        return result.returncode, result.stdout

    def test_last_line_and_exit_status(self):
        events = self.folder / "events.json"
        self.target()
        self.result(GOOGLE_TEST.format(""))
        self.finished(0)
        events.write_text("".join(json.dumps(e) + "\n" for e in self.events))
        self.assertEqual(self.run_script(events), (0, "2 passed, 0 failed\n"))
        self.result(GOOGLE_TEST.format(BAD), label="//a:u", status="FAILED")
        events.write_text("".join(json.dumps(e) + "\n" for e in self.events))
        self.assertEqual(self.run_script(events), (1, "FAILED: //a:u Suite.Bad\n4 passed, 1 failed\n"))
        events.write_text('{"id":')
        self.assertEqual(self.run_script(events)[0], 1)
        self.assertTrue(self.run_script(self.folder / "missing.json")[1].endswith("0 passed, 1 failed\n"))
        self.assertEqual(self.run_script()[0], 64)


if __name__ == "__main__":
    unittest.main()
