"""Bugs of the allocator's model: the comparison with the real allocator must notice each."""

load("mutants.bzl", "mutant")

def _mutant(id, bug, source, find, replace):
    return mutant(
        id = id,
        bug = bug,
        source = source,
        find = find,
        replace = replace,
        suite = "allocator",
        caught_by = "Allocator.DoesWhatItsModelPredicts",
    )

ALLOCATOR_MUTANTS = [
    _mutant(
        id = "a01",
        bug = "sizes are rounded to 1024",
        source = "blocks",
        find = "kMinBlock = 512;",
        replace = "kMinBlock = 1024;",
    ),
    _mutant(
        id = "a02",
        bug = "a block does not merge with the one before",
        source = "blocks",
        find = "if (index > 0) absorb_next(index - 1);",
        replace = "",
    ),
    _mutant(
        id = "a03",
        bug = "first fit",
        source = "blocks",
        find = "if (!best || block.bytes < best->block().bytes) best = place;",
        replace = "if (!best) best = place;",
    ),
    _mutant(
        id = "a04",
        bug = "of equal blocks the last one",
        source = "blocks",
        find = "block.bytes < best->block().bytes) best",
        replace = "block.bytes <= best->block().bytes) best",
    ),
    _mutant(
        id = "a05",
        bug = "uses of other streams are not waited for",
        source = "blocks",
        find = "if (block.uses.empty()) {",
        replace = "if (block.uses.empty() || device.scopes.empty()) {",
    ),
    _mutant(
        id = "a06",
        bug = "events are not polled",
        source = "model",
        find = "make_free_until(device, done_, kAny);",
        replace = "",
    ),
    _mutant(
        id = "a07",
        bug = "the end of a scope lowers the use count",
        source = "model",
        find = "Reply Model::end_scope(int device, int pool) {",
        replace = """
          Reply Model::end_scope(int device, int pool) {
            if (open(device, pool)) release(device, pool);""",
    ),
    _mutant(
        id = "a08",
        bug = "a refused scope takes its use count back",
        source = "model",
        find = "if (open(device, pool)) return refused();",
        replace = "if (open(device, pool)) return release(device, pool), refused();",
    ),
    _mutant(
        id = "a09",
        bug = "a restore forgets the split behind a live block",
        source = "checkpoints",
        find = "// The size that was asked for is forgotten.",
        replace = """
          if (!blocks.empty() && block.state == Block::State::kFree) {
            blocks.back().bytes += block.bytes;
            continue;
          }""",
    ),
    _mutant(
        id = "a10",
        bug = "want of memory in a scope empties the cache",
        source = "model",
        find = "if (place || !device.scopes.empty()) return place;",
        replace = "if (place) return place;",
    ),
    _mutant(
        id = "a11",
        bug = "deferred blocks wait for the streams of their scope too",
        source = "release",
        find = "for (const Stream& stream : block.scope_uses) block.uses.erase(stream);",
        replace = "",
    ),
    _mutant(
        id = "a12",
        bug = "an open scope keeps the segments of pools that nobody holds",
        source = "release",
        find = "    release_whole_segments(device, id);",
        replace = "    if (device.scopes.empty()) release_whole_segments(device, id);",
    ),
]
