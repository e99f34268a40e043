"""Runs what tools/gpu has packed, on a machine with a GPU, its driver and torch for Python.

usage: ./run.sh COMMAND [ARGUMENTS]

  tests [--filter TEXT] [--jobs N] [--out DIR]   every packed test; DIR/tests.jsonl has a line for each
  campaign    compare executions on random cases; --help shows its flags, as with all that follow
  sweep       make every call fail, and check that all is undone
  repro       run a reproducer's folder again
  shrink      make a reproducer as small as it gets
  bench       time and memory, slot graphs against native graphs and eager
  conformance random allocator programs, compared with those of the emulated runtime
  probes      experiments that show one thing each

Relative paths are resolved against the current folder. Exit codes: 0 holds, 1 violated, 2 unknown (this
machine cannot run it), 3 stopped on request, 64 wrong usage, 70 internal error, 74 input/output.
"""
import argparse
import concurrent.futures
import ctypes
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
HOLDS, VIOLATED, UNKNOWN, STOPPED, USAGE = 0, 1, 2, 3, 64
# Of torch's wheels, below site-packages; every one that libtorch_cuda needs.
LIBRARIES = ["torch/lib", "nvidia/cu13/lib", "nvidia/cudnn/lib", "nvidia/nccl/lib", "nvidia/cusparselt/lib",
             "nvidia/nvshmem/lib"]


def give_up(found, expected, advice):
    print(f"run.sh: found {found}, expected {expected}; {advice}", file=sys.stderr)
    sys.exit(UNKNOWN)


def site_packages(wanted):
    """The folder of torch's wheels; checks torch's version and the driver's."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        give_up(f"no torch in {sys.executable}", f"torch {wanted['torch']}",
                "set PYTHON to the Python that has it")
    folder = pathlib.Path(spec.origin).parent
    text = (folder / "version.py").read_text()
    version = re.search(r"__version__ = '([^']*)'", text).group(1)
    cuda = re.search(r"cuda: Optional\[str\] = '([^']*)'", text)
    if version.split("+")[0] != wanted["torch"] or not cuda or cuda.group(1) != wanted["cuda"]:
        give_up(f"torch {version} for CUDA {cuda.group(1) if cuda else 'none'} in {folder}",
                f"torch {wanted['torch']} for CUDA {wanted['cuda']}",
                f"pip install torch=={wanted['torch']}, or set PYTHON")
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        number = ctypes.c_int()
        driver.cuDriverGetVersion(ctypes.byref(number))
    except OSError:
        give_up("no libcuda.so.1", "an NVIDIA driver", "is this a machine with a GPU (nvidia-smi)?")
    needed = int(float(wanted["cuda"]) * 1000)
    if number.value < needed:
        give_up(f"a driver for CUDA {number.value / 1000:.1f}", f"CUDA {wanted['cuda']} or newer",
                "install a newer driver")
    return folder.parent


def environment(wanted):
    below = site_packages(wanted)
    folders = [str(HERE / "lib")] + [str(below / name) for name in LIBRARIES if (below / name).is_dir()]
    values = dict(os.environ, BUILD_WORKING_DIRECTORY=os.getcwd(), OMP_NUM_THREADS="1",
                  SLOTGRAPH_PACKED="1")
    values["LD_LIBRARY_PATH"] = ":".join(folders + [v for v in [os.environ.get("LD_LIBRARY_PATH")] if v])
    return values


def run_test(test, values):
    begin = time.monotonic()
    record = {"test": test["name"], "verdict": "unknown", "seconds": 0.0, "output": ""}
    try:
        done = subprocess.run([str(HERE / test["path"]), *test["arguments"]], cwd=HERE,
                              env=dict(values, **test["environment"]),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              timeout=test["timeout"])
        record["verdict"] = {HOLDS: "holds", UNKNOWN: "unknown"}.get(done.returncode, "violated")
        record["exit"] = done.returncode
        output = done.stdout
    except subprocess.TimeoutExpired as error:
        record["exit"] = None
        output = (error.stdout or b"").decode(errors="replace") + f"\nno end after {test['timeout']} s"
    ran = re.search(r"\[==========\] (\d+) tests? from", output)
    record["cases"] = int(ran.group(1)) if ran else 1
    record["failed"] = sorted(set(re.findall(r"\[  FAILED  \] (\S+?)(?: \(|,|$)", output, re.M)))
    record["seconds"] = round(time.monotonic() - begin, 2)
    if record["verdict"] != "holds":
        half = 4000
        record["output"] = output if len(output) <= 2 * half else output[:half] + "\n...\n" + output[-half:]
    return record


def run_tests(arguments, packed, values):
    parser = argparse.ArgumentParser(prog="run.sh tests")
    parser.add_argument("--filter", default="", help="only tests whose name contains this")
    parser.add_argument("--jobs", type=int, default=max(1, min(8, (os.cpu_count() or 2) // 2)))
    parser.add_argument("--out", default="slotgraph-out", help="folder of tests.jsonl")
    options = parser.parse_args(arguments)
    tests = [test for test in packed["tests"] if options.filter in test["name"]]
    if not tests:
        print(f"run.sh tests: no test's name contains '{options.filter}'", file=sys.stderr)
        return USAGE
    out = pathlib.Path(options.out).absolute()
    out.mkdir(parents=True, exist_ok=True)
    temporary = out / "tests.jsonl.part"
    verdicts = {"holds": 0, "violated": 0, "unknown": 0}
    cases = 0
    with open(temporary, "w", encoding="utf-8") as lines, \
            concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run_test, t, values) for t in tests]):
            record = done.result()
            verdicts[record["verdict"]] += 1
            cases += record["cases"]
            lines.write(json.dumps(record) + "\n")
            if record["verdict"] != "holds":
                print(f"{record['verdict']}: {record['test']} (exit {record['exit']}) "
                      + " ".join(record["failed"]), flush=True)
    os.replace(temporary, out / "tests.jsonl")
    print(f"{len(tests)} test programs, {cases} test cases: "
          + ", ".join(f"{n} {verdict}" for verdict, n in verdicts.items()) + f"; {out}/tests.jsonl")
    return VIOLATED if verdicts["violated"] else UNKNOWN if verdicts["unknown"] else HOLDS


def main():
    packed = json.loads((HERE / "packed.json").read_text())
    command, arguments = (sys.argv[1], sys.argv[2:]) if len(sys.argv) > 1 else ("--help", [])
    if command in ("--help", "-h"):
        print(__doc__, end="")
        return HOLDS
    if command != "tests" and command not in packed["programs"]:
        print(f"run.sh: found '{command}', expected one of tests, {', '.join(packed['programs'])}; "
              "run.sh --help says what each does", file=sys.stderr)
        return USAGE
    values = environment(packed)
    if command == "tests":
        return run_tests(arguments, packed, values)
    program = packed["programs"][command]
    os.chdir(HERE)
    os.execve(HERE / program["path"], [program["path"], *program["arguments"], *arguments], values)
    return None


if __name__ == "__main__":
    sys.exit(main())
