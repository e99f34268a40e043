"""A repository made of wheels that are pinned by version and SHA-256."""

def _pinned_wheels(ctx):
    fetch = ctx.path(Label("//third_party/torch:fetch_wheels.py"))
    pins = ctx.path(ctx.attr.pins)
    ctx.report_progress("downloading (once, 540 MB) and unpacking the torch and CUDA wheels")
    result = ctx.execute(["python3", fetch, pins, "."], timeout = 1800)
    if result.return_code:
        fail("third_party/torch: " + result.stdout + result.stderr)
    ctx.symlink(ctx.attr.build_file, "BUILD.bazel")

pinned_wheels = repository_rule(
    implementation = _pinned_wheels,
    attrs = {
        "build_file": attr.label(mandatory = True),
        "pins": attr.label(mandatory = True),
    },
    environ = ["SLOTGRAPH_CACHE"],
)
