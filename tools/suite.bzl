"""A test whose objects other binaries may link as well."""

def cc_suite(name, srcs, size = "small", data = [], deps = [], tags = []):
    """A cc_test NAME, and the library NAME_suite of its tests for //properties/mutants."""
    native.cc_library(
        name = name + "_suite",
        testonly = True,
        srcs = srcs,
        visibility = ["//properties/mutants:__pkg__"],
        tags = tags,
        deps = deps,
        alwayslink = True,
    )
    native.cc_test(
        name = name,
        size = size,
        data = data,
        tags = tags,
        deps = [":" + name + "_suite"],
    )
