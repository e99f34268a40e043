"""Planted bugs: each must be caught by a named test of a suite."""

def mutants(name, sources, suites, data, mutants):
    """A test NAME that runs every mutant and wants the named test of its suite to fail.

    Args:
      name: of the test
      sources: label of the source file of each short name
      suites: label of the suite of each short name: a library of GoogleTest tests
      data: files that the suites read
      mutants: a list of structs with `id`, `bug` (what is planted), `source` (short name), `find` (text that
        stands in the source once), `replace`, `suite` (short name) and `caught_by` (a test of the suite)
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
        native.cc_binary(
            name = binary,
            testonly = True,
            srcs = [mutated],
            copts = ["-Wno-unused"],
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
