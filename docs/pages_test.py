#!/usr/bin/env python3
"""The example on the library page is the one that is tested."""
import re
import sys

source = open("docs/example_test.cc").read()
match = re.search(r"// example: begin\n(.*?) *// example: end", source, re.S)
code = "".join(line[2:] if line.startswith("  ") else line for line in match.group(1).splitlines(keepends=True))
pages = re.findall(r"```cpp\n(.*?)```", open("docs/library.md").read(), re.S)
if code not in pages:
    sys.exit("docs/library.md: the example differs from docs/example_test.cc; copy this:\n" + code)
