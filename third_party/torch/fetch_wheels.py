"""Downloads the pinned wheels once, checks their hashes, and unpacks what the build uses.

usage: fetch_wheels.py PINS.json DESTINATION

Wheels are kept by hash in $SLOTGRAPH_CACHE (default ~/.cache/slotgraph), outside Bazel's output base, so
that a new clone or `bazel clean --expunge` downloads nothing again.
"""
import fnmatch
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as wheel:
        for block in iter(lambda: wheel.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def download(pin, python, cache):
    kept = cache / (pin["sha256"] + ".whl")
    if kept.exists() and sha256(kept) == pin["sha256"]:
        return kept
    requirement = f'{pin["name"]}=={pin["version"]}'
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir",
                   "--only-binary=:all:", "--python-version", python, "--implementation", "cp",
                   "--platform", pin["platform"], "--dest", folder, requirement]
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if result.returncode:
            sys.exit(f"cannot download {requirement}: is there a network, or a PyPI mirror (PIP_INDEX_URL)?\n"
                     + result.stdout)
        wheel = next(pathlib.Path(folder).glob("*.whl"))
        found = sha256(wheel)
        if found != pin["sha256"]:
            sys.exit(f'{wheel.name}: sha256 is {found}, expected {pin["sha256"]}; '
                     "the index served another file, nothing was unpacked")
        os.replace(wheel, kept)
    return kept


def main(pins_file, destination):
    pins = json.loads(pathlib.Path(pins_file).read_text())
    default = pathlib.Path(os.environ.get("HOME", "/root")) / ".cache" / "slotgraph"
    cache = pathlib.Path(os.environ.get("SLOTGRAPH_CACHE", default)) / "wheels"
    cache.mkdir(parents=True, exist_ok=True)
    for pin in pins["wheels"]:
        with zipfile.ZipFile(download(pin, pins["python"], cache)) as wheel:
            wanted = [n for n in wheel.namelist() if any(fnmatch.fnmatch(n, p) for p in pin["unpack"])]
            wheel.extractall(destination, wanted)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
