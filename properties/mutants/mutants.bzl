"""Planted bugs: each must be caught by a named test of a suite."""

load("//tools:cc.bzl", "cc_binary", "torch_binary")

def mutant(id, bug, source, find, replace, suite, caught_by):
    """One planted bug.

    Args:
      id: short name
      bug: what is planted
      source: short name of the source file
      find: text that stands in it once
      replace: what stands there instead
      suite: short name of the suite
      caught_by: test of the suite that must fail
    """
    return struct(
        id = id,
        bug = bug,
        source = source,
        find = find,
        replace = replace,
        suite = suite,
        caught_by = caught_by,
    )

def mutants(name, sources, suites, mutants, data = [], torch = False, defines = {}):
    """A test NAME that runs every mutant and wants the named test of its suite to fail.

    Args:
      name: of the test
      sources: label of the source file of each short name
      suites: label of the suite of each short name: a library of GoogleTest tests
      mutants: what mutant() returns
      data: files that the suites read
      torch: whether the sources see torch's headers
      defines: what a source is compiled with, by its short name
    """
    arguments = []
    binaries = []
    for mutant in mutants:
        # The mutated object comes before the library that holds the original one, whose archive member is
        # then never taken.
        mutated = "%s_%s.cc" % (name, mutant.id)
        binary = "%s_%s" % (name, mutant.id)
        native.genrule(
            name = binary + "_source",
            testonly = True,
            srcs = [sources[mutant.source]],
            outs = [mutated],
            cmd = "$(location :mutate) $< $@ %s %s" % (_quoted(mutant.find), _quoted(mutant.replace)),
            tools = [":mutate"],
        )
        (torch_binary if torch else cc_binary)(
            name = binary,
            testonly = True,
            srcs = [mutated],
            copts = ["-Wno-unused", "-Wno-unused-parameter"],
            local_defines = defines.get(mutant.source, []),
            linkstatic = True,
            deps = [suites[mutant.suite]],
        )
        binaries.append(":" + binary)
        arguments += [mutant.id, "'%s'" % mutant.bug, "$(location :%s)" % binary, mutant.caught_by]
    native.sh_test(
        name = name,
        size = "medium",
        srcs = ["must_fail.py"],
        args = arguments,
        data = binaries + data,
    )

def _quoted(text):
    return "'%s'" % text.replace("'", "'\\''").replace("$", "$$")
