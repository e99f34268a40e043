"""Precompiled headers for clang: parsed once, read by every source (third_party/README.md: what this gives)."""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "ACTION_NAMES")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _precompiled_header(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    context = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps]).compilation_context
    flags = cc_common.get_memory_inefficient_command_line(
        feature_configuration = features,
        action_name = ACTION_NAMES.cpp_compile,
        variables = cc_common.create_compile_variables(
            feature_configuration = features,
            cc_toolchain = toolchain,
            user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts,
            quote_include_directories = depset(["."], transitive = [context.quote_includes]),
            use_pic = True,
        ),
    )
    sources = ctx.files.srcs

    # The output names its headers by absolute paths with their times: through /proc, and without times, they are true
    # in every checkout. The lists come by standard input, so that objects do not seem to depend on files elsewhere.
    ctx.actions.run_shell(
        command = "output=$1; shift; cat %s | \"$@\" - -o \"$output\"" % " ".join([file.path for file in sources]),
        arguments = [ctx.outputs.out.path, toolchain.compiler_executable] + flags + [
            "-c",
            "-x",
            "c++-header",
            "-fpch-instantiate-templates",
            "-Xclang",
            "-fno-pch-timestamp",
            "-working-directory",
            "/proc/self/cwd",
        ],
        inputs = depset(sources, transitive = [context.headers]),
        outputs = [ctx.outputs.out],
        tools = toolchain.all_files,
        mnemonic = "CppPrecompile",
        progress_message = "Precompiling headers for %s" % ctx.outputs.out.short_path,
        execution_requirements = {"no-sandbox": "1"},
    )

precompiled_header = rule(
    implementation = _precompiled_header,
    attrs = {
        "srcs": attr.label_list(allow_files = [".inc"], mandatory = True, doc = "Lists of includes."),
        "out": attr.output(mandatory = True, doc = "What clang reads in their place."),
        "deps": attr.label_list(providers = [CcInfo], doc = "Libraries whose headers they include."),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
