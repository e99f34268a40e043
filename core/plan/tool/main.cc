#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/exit_code.h"
#include "core/files.h"
#include "core/order/balanced_cp.h"
#include "core/order/dynamic_cp.h"
#include "core/order/microbatch_counts.h"
#include "core/plan/handshake.h"
#include "core/plan/json/packing_json.h"
#include "core/plan/json/plan_document.h"
#include "core/plan/json/public_json.h"
#include "core/plan/json/schedule_json.h"
#include "core/plan/packing/packing.h"
#include "core/plan/tool/compare.h"
#include "core/plan/tool/draw.h"
#include "core/plan/tool/explain.h"
#include "core/program.h"

namespace slotgraph {
namespace {

constexpr const char* kFooter =
    "A SHAPE is a JSON file with an object `config` as in core/plan/testdata, or that object "
    "alone:\n"
    "  {\"pipeline_size\": 2, \"pipeline_rank\": 0, \"virtual_stages\": 2,\n"
    "   \"microbatch_group_size\": 2, \"layers_per_chunk\": [1, 1], \"cp_sizes\": [2, 1],\n"
    "   \"max_microbatches\": 8}\n"
    "A PLAN is what `make` writes, or a file of the public planner.\n"
    "Examples:\n"
    "  bazel run //:plan -- make shape.json --out plan.json\n"
    "  bazel run //:plan -- explain plan.json 0,0,0 1,2,0\n"
    "  bazel run //:plan -- draw plan.json --out plan.svg\n"
    "  bazel run //:plan -- schedule batch.json --scheduler balanced\n"
    "Exit codes: 0 holds, 1 a broken rule or a difference, 64 wrong flag or input, 70 internal\n"
    "error, 74 a file cannot be written.";

struct Flags {
  std::string file, second, third, out;
  std::string mode = "corrected", counts = "aligned", sizes = "unit";
  std::string bytes_file;
  std::uint64_t seed = 1;
  int ring = 0;
  int rings = 0;
  int microbatches = 0;
  std::string scheduler = "greedy";
  double communication = 0;
  bool pack = false;
  bool pipeline = false;
};

LayerBytes read_bytes(const Flags& flags, const std::vector<int>& layers_per_chunk) {
  if (!flags.bytes_file.empty()) {
    const nlohmann::json json = read_json_file(from_caller(flags.bytes_file));
    return layer_bytes_from_json(JsonReader(json, flags.bytes_file));
  }
  for (const SizeSet set : kSizeSets)
    if (flags.sizes == name_of(set)) return seeded_bytes(set, layers_per_chunk, flags.seed);
  return {};
}

Plan read_plan(const JsonReader& reader) {
  if (reader.has("cp_sizes") && !reader.has("slots") && !reader.has("config")) {
    throw Error(Error::kInput,
                {"T04", reader.path(), "a shape", "a plan", "make a plan of it first"});
  }
  return plan_from_any(reader);
}

Plan read_plan(const std::string& file) {
  const nlohmann::json json = read_json_file(from_caller(file));
  return read_plan(JsonReader(json, file));
}

// Standard output without --out.
void put(const std::string& out, const std::string& text) {
  if (out.empty()) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
      throw Error(Error::kFile, {"F03", "standard output", "it cannot be written",
                                 "all of the text", "use --out"});
  } else {
    write_file(from_caller(out), text);
    fmt::print(stderr, "written: {}\n", from_caller(out));
  }
}

void describe(const char* slots, const PackingScore& score, const char* unit) {
  const std::int64_t bound = score.lower_bound();
  fmt::print(
      stderr,
      "{}: {} {} of arenas, at least {} (live at once {}, clique {}{}), {:+.1f} %{}; {} graphs "
      "each way\n",
      slots, score.arena_bytes, unit, bound, score.peak_bytes, score.clique_bytes,
      score.clique_heaviest ? "" : ", search cut", 100 * score.gap(bound),
      score.optimal ? ", proved to be the least for these slots" : "", score.executables);
}

// Prints the broken rule of a plan that was read.
template <typename Work>
bool holds(const std::string& file, Work work) {
  try {
    work();
    return true;
  } catch (const Error& error) {
    if (error.rule() == "PK1") throw;  // the sizes are wrong, not the plan
    fmt::print("{}: {}\n", file, error.what());
    return false;
  }
}

PlanRequest read_request(const Flags& flags) {
  const nlohmann::json json = read_json_file(from_caller(flags.file));
  const JsonReader reader(json, flags.file);
  if (reader.has("plan") || (reader.has("slots") && !reader.has("config"))) {
    throw Error(Error::kInput,
                {"T04", flags.file, "a plan", "a shape", "use check, explain or draw with plans"});
  }
  PlanRequest request = request_from_config(reader.has("config") ? reader.field("config") : reader);
  request.name = reader.has("name") ? reader.field("name").text()
                                    : std::filesystem::path(flags.file).stem().string();
  if (flags.counts == "legal") request.counts = legal_counts(request.shape, request.counts.back());
  request.ring_length = flags.ring;
  request.omit_capture_order = flags.mode == "public";
  return request;
}

void check_flags(const Flags& flags) {
  const auto refuse = [](const char* found, const char* expected) {
    throw Error(Error::kInput, {"T04", "flags", found, expected, "leave one of them out"});
  };
  if (flags.mode == "public" && (flags.pack || flags.rings > 0))
    refuse("--mode public with --pack or --rings", "the public planner's colours");
  if (!flags.bytes_file.empty() && flags.sizes != "unit")
    refuse("--bytes and --sizes", "one of them");
}

// What the plan of each ring costs, as --pack says.
void print_rings(const Flags& flags, PlanRequest request, const LayerBytes& bytes,
                 const char* unit) {
  const int shortest = shortest_ring(request.shape, request.counts);
  // A ring longer than the longest step has slots that are never used.
  const int longest = std::max(shortest, std::min(flags.rings, request.counts.back()));
  if (flags.rings < shortest) {
    throw Error(Error::kInput,
                {"T04", "--rings", fmt::to_string(flags.rings),
                 fmt::format("at least {}, the shortest ring", shortest), "give a longer ring"});
  }
  for (request.ring_length = shortest; request.ring_length <= longest; ++request.ring_length) {
    Plan plan = make_plan(request);
    const PackingScore cost =
        flags.pack ? pack(std::move(plan), bytes, Effort{}).score : score(plan, bytes, Effort{});
    describe(fmt::format("ring {}", request.ring_length).c_str(), cost, unit);
  }
}

int make(const Flags& flags) {
  check_flags(flags);
  const PlanRequest request = read_request(flags);
  Plan plan = make_plan(request);
  const LayerBytes bytes = read_bytes(flags, request.layers_per_chunk);
  const bool unit = flags.bytes_file.empty() && flags.sizes == "unit";
  const char* name = unit ? "frames" : "bytes";
  if (flags.rings > 0) print_rings(flags, request, bytes, name);
  PackingScore score_of_plan;
  if (flags.pack) {
    PackedPlan packed = pack(std::move(plan), bytes, Effort{});
    plan = std::move(packed.plan);
    score_of_plan = packed.score;
  } else {
    score_of_plan = score(plan, bytes, Effort{});
  }
  if (request.omit_capture_order) {
    fmt::print(stderr,
               "mode public: the order of capture is not covered; frames that are live together "
               "only then may share an arena\n");
  }
  describe("plan", score_of_plan, name);
  put(flags.out, document_of(plan).dump() + "\n");
  return kHolds;
}

int check_file(const Flags& flags) {
  const nlohmann::json json = read_json_file(from_caller(flags.file));
  const JsonReader reader(json, flags.file);
  const Plan plan = read_plan(reader);
  if (!holds(flags.file, [&] { check(plan); })) return kViolated;
  const Handshake mine = handshake(plan);
  if (reader.has("with_capture_order")) {
    fmt::print(
        "{}: its slots in `with_capture_order` were read, which cover the order of capture\n",
        flags.file);
  }
  fmt::print("{}: holds; {} branches, ring {}, capabilities {}, digest {}{}\n", flags.file,
             plan.slots.size(), plan.ring_length, mine.capabilities, mine.digest,
             reader.has("digest") ? "" : " (none in the file)");
  if (flags.second.empty()) return kHolds;
  const Plan other = read_plan(flags.second);
  if (!holds(flags.second, [&] {
        check(other);
        const auto agree = flags.pipeline ? check_pipeline_agreement : check_agreement;
        agree(flags.file, mine, flags.second, handshake(other));
      }))
    return kViolated;
  fmt::print("{}: {}\n", flags.second, flags.pipeline ? "fits into one pipeline" : "the same plan");
  return kHolds;
}

int explain_frames(const Flags& flags) {
  const Plan plan = read_plan(flags.file);
  if (!holds(flags.file, [&] { check_structure(plan); })) return kViolated;
  fmt::print("{}", explain(plan, frame_from(flags.second, plan), frame_from(flags.third, plan)));
  return kHolds;
}

int draw_plan(const Flags& flags) {
  const Plan plan = read_plan(flags.file);
  if (!holds(flags.file, [&] { check(plan); })) return kViolated;
  const LayerBytes bytes = read_bytes(flags, plan.layers_per_chunk);
  const int count = flags.microbatches == 0 ? plan.covered_counts.back() : flags.microbatches;
  put(flags.out, draw(plan, bytes, count));
  return kHolds;
}

int make_schedule(const Flags& flags) {
  const nlohmann::json json = read_json_file(from_caller(flags.file));
  const CpBatch batch = batch_from_json(JsonReader(json, flags.file));
  const CpCost cost{flags.communication};
  const CpSchedule schedule = flags.scheduler == "balanced"
                                  ? balanced_schedule(batch.limits, batch.lengths, cost)
                                  : greedy_schedule(batch.limits, batch.lengths);
  check_schedule(batch.limits, batch.lengths, schedule);
  const double found = critical_path(batch.lengths, schedule, cost);
  const double bound = shortest_critical_path(batch.limits, batch.lengths, cost);
  fmt::print(stderr, "{}: {} microbatches, critical path {:.4g}, at least {:.4g} ({:+.1f} %)\n",
             flags.scheduler, schedule.size(), found, bound,
             bound > 0 ? 100 * (found / bound - 1) : 0);
  put(flags.out, to_json(schedule).dump() + "\n");
  return kHolds;
}

int report(const Comparison& comparison) {
  for (const std::string& file : comparison.skipped) fmt::print("skipped, no `config`: {}\n", file);
  for (const std::string& line : comparison.differences) fmt::print("different: {}\n", line);
  fmt::print("{} equal, {} different\n", comparison.equal, comparison.differences.size());
  return comparison.differences.empty() ? kHolds : kViolated;
}

void add_sizes(CLI::App* command, Flags& flags) {
  command->add_option("--sizes", flags.sizes, "frame sizes: all alike, or one of the seeded sets")
      ->check(CLI::IsMember({"unit", "uniform", "skewed", "per-chunk"}));
  command->add_option("--seed", flags.seed, "of a seeded set")->check(CLI::NonNegativeNumber);
  command->add_option(
      "--bytes", flags.bytes_file,
      "JSON file of frame sizes: for each chunk a list with the bytes of each layer");
}

int run(int argc, char** argv) {
  CLI::App app("Makes slot plans, checks them, explains them and draws them.", "tool");
  app.require_subcommand(1);
  app.footer(kFooter);
  Flags flags;
  int code = kHolds;

  CLI::App* command = app.add_subcommand("make", "a plan for a shape");
  command->add_option("SHAPE", flags.file)->required();
  command
      ->add_option("--mode", flags.mode,
                   "public repeats the public planner, which leaves out the order of capture")
      ->check(CLI::IsMember({"corrected", "public"}));
  command
      ->add_option("--counts", flags.counts,
                   "numbers of microbatches to cover: multiples of the group size, or all that the "
                   "schedulers run")
      ->check(CLI::IsMember({"aligned", "legal"}));
  command->add_option("--ring", flags.ring, "ring length; 0: the shortest")
      ->check(CLI::Range(0, 1 << 14));
  command->add_option("--rings", flags.rings, "print what each ring up to this length costs")
      ->check(CLI::Range(0, 1 << 14));
  command->add_flag("--pack", flags.pack, "colour by bytes instead of as the public planner does");
  add_sizes(command, flags);
  command->add_option("--out", flags.out, "file; standard output without it");
  command->callback([&] { code = make(flags); });

  command = app.add_subcommand("check", "every rule; with a second plan, whether both agree");
  command->add_option("PLAN", flags.file)->required();
  command->add_option("OTHER", flags.second);
  command->add_flag("--pipeline", flags.pipeline,
                    "OTHER is another rank of the same pipeline: ring and variants must agree");
  add_sizes(command, flags);
  command->callback([&] { code = check_file(flags); });

  command = app.add_subcommand("explain", "why two frames share an arena or not");
  command->add_option("PLAN", flags.file)->required();
  command->add_option("FRAME", flags.second, "CHUNK,SLOT,LAYER")->required();
  command->add_option("OTHER", flags.third, "CHUNK,SLOT,LAYER")->required();
  command->callback([&] { code = explain_frames(flags); });

  command = app.add_subcommand("draw", "SVG: frames over time, a row for each arena");
  command->add_option("PLAN", flags.file)->required();
  command->add_option("--microbatches", flags.microbatches,
                      "a covered count; the largest without it");
  add_sizes(command, flags);
  command->add_option("--out", flags.out, "file; standard output without it");
  command->callback([&] { code = draw_plan(flags); });

  command = app.add_subcommand("compare", "recompute every public plan of a folder in mode public");
  command->add_option("DIR", flags.file)->required();
  command->callback([&] { code = report(compare_plans(from_caller(flags.file))); });

  command = app.add_subcommand("schedule", "microbatches and CP groups for a batch of sequences");
  command
      ->add_option(
          "BATCH", flags.file,
          "JSON: ranks, cap, min_cp, microbatch_group_size, max_num_seqs and lengths, as a "
          "line of the public scheduler's files")
      ->required();
  command
      ->add_option("--scheduler", flags.scheduler,
                   "greedy: the public one; balanced: groups of like cost share a microbatch")
      ->check(CLI::IsMember({"greedy", "balanced"}))
      ->capture_default_str();
  command
      ->add_option("--communication", flags.communication,
                   "cost of a token that a rank receives, in units of attention")
      ->check(CLI::Range(0.0, 1e12))
      ->capture_default_str();
  command->add_option("--out", flags.out, "file; standard output without it");
  command->callback([&] { code = make_schedule(flags); });

  command =
      app.add_subcommand("schedules", "recompute the public schedules and refusals of a folder");
  command->add_option("DIR", flags.file)->required();
  command->callback([&] { code = report(compare_schedules(from_caller(flags.file))); });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kHolds : kUsage;
  }
  return code;
}

}  // namespace
}  // namespace slotgraph

int main(int argc, char** argv) {
  return slotgraph::run_program("tool", argc, argv, slotgraph::run);
}
