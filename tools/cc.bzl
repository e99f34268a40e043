"""The project's C++ targets: Bazel's own rules, with a precompiled header (//third_party/precompiled).

torch_library, torch_test, torch_binary and torch_suite are for sources that see torch's headers, directly or through
their deps; the plain ones for all others. A target with defines of its own parses its headers itself.
"""

load("//third_party/precompiled:version.bzl", "TORCH_VERSION")

# MMD: Bazel knows the wheel's headers by other paths than the precompiled one.
_STD = struct(header = "std", file = "std", flags = [])
_TORCH = struct(
    header = "torch",
    file = "torch-%s" % TORCH_VERSION,
    flags = ["-MMD", "-Wno-unused-command-line-argument"],
)

def _target(rule, use, copts = [], deps = [], local_defines = [], **arguments):
    if arguments.get("srcs") and not local_defines:
        deps = deps + ["//third_party/precompiled:" + use.header]
        copts = ["-include-pch", "$(BINDIR)/third_party/precompiled/%s.pch" % use.file] + use.flags + copts
    rule(copts = copts, deps = deps, local_defines = local_defines, **arguments)

def _on_device(tags):
    """Tests that see torch run on the device, whichever is built: //:gpu has them, unless they need the emulation."""
    return tags if "host-device" in tags else tags + ["device"]

def cc_library(**arguments):
    _target(native.cc_library, _STD, **arguments)

def cc_test(**arguments):
    _target(native.cc_test, _STD, **arguments)

def cc_binary(**arguments):
    _target(native.cc_binary, _STD, **arguments)

def torch_library(**arguments):
    _target(native.cc_library, _TORCH, **arguments)

def torch_test(tags = [], **arguments):
    _target(native.cc_test, _TORCH, tags = _on_device(tags), **arguments)

def torch_binary(**arguments):
    _target(native.cc_binary, _TORCH, **arguments)

def _suite(use, name, srcs, size = "small", data = [], deps = [], tags = []):
    _target(
        native.cc_library,
        use,
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

def cc_suite(**arguments):
    """A cc_test NAME, and the library NAME_suite of its tests for //properties/mutants."""
    _suite(_STD, **arguments)

def torch_suite(tags = [], **arguments):
    """As cc_suite, for tests that see torch's headers."""
    _suite(_TORCH, tags = _on_device(tags), **arguments)

def test_suites():
    """The package's part of //:quick, //:full and //:gpu. At the end of a BUILD file that has tests."""
    for name, tags in {
        "quick_tests": ["small", "-slow"],
        "tests": [],
        "device_tests": ["device"],
    }.items():
        native.test_suite(name = name, tags = tags, visibility = ["//:__pkg__"])
