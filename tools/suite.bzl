"""A test whose objects other binaries may link as well."""

def cc_suite(name, srcs, size = "small", data = [], deps = []):
    """A cc_test NAME, and the library NAME_suite of its tests for //properties/mutants."""
    native.cc_library(
        name = name + "_suite",
        testonly = True,
        srcs = srcs,
        visibility = ["//properties/mutants:__pkg__"],
        deps = deps,
        alwayslink = True,
    )
    native.cc_test(
        name = name,
        size = size,
        data = data,
        deps = [":" + name + "_suite"],
    )
