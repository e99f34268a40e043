"""What a torch_ target is compiled against."""

# Of //third_party/torch:wheels.json (tools/tidy.py compares). In the name of the precompiled header, and so in every
# command that reads it: Bazel builds them anew with another wheel.
TORCH_VERSION = "2.11.0"
