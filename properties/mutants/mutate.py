#!/usr/bin/env python3
"""Writes a source file with one piece of text replaced.

usage: mutate.py SOURCE OUT FIND REPLACE

White space in FIND stands for any white space, so that formatting does not break a mutant. FIND must stand in
the source exactly once.

exit status: 0 written; 1 FIND does not stand there once
"""
import re
import sys

source, out, find, replace = sys.argv[1:]
text = open(source).read()
pattern = r"\s+".join(re.escape(part) for part in find.split())
found = re.findall(pattern, text)
if len(found) != 1:
    sys.exit(f"{source}: found the text {len(found)} times, expected once: {find}\nchange the mutant with the source")
with open(out, "w") as file:
    file.write(re.sub(pattern, lambda match: replace, text))
