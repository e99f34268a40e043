#!/usr/bin/env python3
"""Compares the records of one campaign on two devices, case by case.

usage: compare_records.py FIRST.jsonl... --with SECOND.jsonl...

Equal on all devices: the case, its plan and schedule, how many tensors and bytes were shown and compared, replays,
captured frames, and the verdict. Where survivors lie (layout_digest) is equal unless kernels allocate otherwise: how
many cases are is printed, and which plans are not. Values are each device's own.

exit status: 0 all that must be equal is; 1 something differs, or a case is in one set only; 64 wrong usage
"""
import collections
import json
import pathlib
import sys

EQUAL = ["case_seed", "case_digest", "plan", "schedule", "skipped", "wrapped", "mixed", "equal_tokens", "verdict",
         "microbatches", "frames_captured", "replays", "tensors_compared", "bytes_compared"]


def read(paths):
    records = {}
    for path in paths:
        for line in pathlib.Path(path).read_text().splitlines():
            record = json.loads(line)
            records[record["index"]] = record
    return records


def main(arguments):
    if "--with" not in arguments or arguments[0] == "--with" or arguments[-1] == "--with":
        print(__doc__, file=sys.stderr)
        return 64
    split = arguments.index("--with")
    try:
        first, second = read(arguments[:split]), read(arguments[split + 1:])
    except (OSError, ValueError, KeyError) as error:
        print(f"compare_records.py: found {error!r}, expected files of records (records-*.jsonl of a campaign)",
              file=sys.stderr)
        return 64
    different = 0
    for index in sorted(first.keys() ^ second.keys()):
        different += 1
        print(f"case {index} is in the {'first' if index in first else 'second'} set only")
    layouts = collections.Counter()
    plans = collections.Counter()
    both = sorted(first.keys() & second.keys())
    for index in both:
        one, other = first[index], second[index]
        fields = [name for name in EQUAL if one[name] != other[name]]
        different += bool(fields)
        for name in fields:
            print(f"case {index}, {name}: {one[name]} and {other[name]}")
        if one["layout_digest"] and other["layout_digest"]:
            same = one["layout_digest"] == other["layout_digest"]
            layouts[same] += 1
            plans[one["plan"]] += not same
    print(f"{len(both)} cases, {sum(first[i]['tensors_compared'] for i in both)} tensors, {different} differ")
    print(f"layouts: {layouts[True]} equal, {layouts[False]} where kernels allocate otherwise")
    for plan, count in sorted(plans.items()):
        if count:
            print(f"  {plan}: {count}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
