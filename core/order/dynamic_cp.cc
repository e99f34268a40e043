#include "core/order/dynamic_cp.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "core/error.h"
#include "core/order/microbatch_counts.h"

namespace slotgraph {
namespace {

constexpr int kMostRanks = 1 << 20, kMostTokens = 1 << 20;

// A microbatch above this multiple of its longest sample's cost takes no more samples.
constexpr double kWorkloadSlack = 1.05;

bool is_power_of_two(int value) {
  return value > 0 && std::has_single_bit(static_cast<unsigned>(value));
}

// One microbatch while samples are added to it.
class Packing {
 public:
  Packing(const CpLimits& limits, std::int64_t tallest)
      : limits_(limits), ceiling_(static_cast<double>(tallest) * limits.cap * kWorkloadSlack) {}

  // Adds the sample where the largest rank cost becomes smallest; among equals the smaller size
  // wins, then an existing group, then the older one. False if no place keeps all limits.
  bool add(int sample, std::int64_t length, int needed) {
    if (groups_.empty()) {
      open(needed, sample, length);
      return true;
    }
    if (used_ == limits_.ranks && static_cast<double>(length) > room_ + 1) return false;
    double lowest = 0;
    Group* best = nullptr;
    int opened = 0;
    for (int size = needed; size <= limits_.ranks; size *= 2) {
      const double cost = cost_of(length, size);
      const double tokens = static_cast<double>(length) / size;
      const auto consider = [&](double result, Group* group) {
        if ((best != nullptr || opened > 0) && result >= lowest) return;
        lowest = result;
        best = group;
        opened = group == nullptr ? size : 0;
      };
      for (Group& group : groups_) {
        if (group.size != size || group.tokens + tokens > limits_.cap || is_full(group)) continue;
        consider(std::max(largest_, group.cost + cost), &group);
      }
      if (used_ + size <= limits_.ranks) consider(std::max(largest_, cost), nullptr);
      // No place is better than one that leaves the largest cost as it is.
      if ((best != nullptr || opened > 0) && lowest <= largest_) break;
    }
    if ((best == nullptr && opened == 0) || lowest > ceiling_) return false;
    if (best == nullptr) {
      open(opened, sample, length);
    } else {
      put(*best, sample, length);
    }
    return true;
  }

  CpMicrobatch finish() {
    CpMicrobatch microbatch;
    for (Group& group : groups_) microbatch.push_back({0, group.size, std::move(group.samples)});
    fill_ranks(limits_.ranks, microbatch);
    return microbatch;
  }

 private:
  struct Group {
    int size;
    double tokens;  // of each rank
    double cost;    // of each rank
    std::vector<int> samples;
  };

  // Attention of one rank: quadratic in the length, shared by the group's ranks.
  static double cost_of(std::int64_t length, int size) {
    return static_cast<double>(length) * static_cast<double>(length) / size;
  }
  void put(Group& group, int sample, std::int64_t length) {
    group.samples.push_back(sample);
    group.tokens += static_cast<double>(length) / group.size;
    group.cost += cost_of(length, group.size);
    largest_ = std::max(largest_, group.cost);
    room_ = 0;
    for (const Group& each : groups_)
      room_ = std::max(room_, (limits_.cap - each.tokens) * each.size);
  }
  void open(int size, int sample, std::int64_t length) {
    groups_.push_back({size, 0, 0, {}});
    used_ += size;
    put(groups_.back(), sample, length);
  }
  bool is_full(const Group& group) const {
    return limits_.max_num_seqs > 0 &&
           static_cast<int>(group.samples.size()) >= limits_.max_num_seqs;
  }

  const CpLimits& limits_;
  double ceiling_;
  std::vector<Group> groups_;
  int used_ = 0;  // ranks that have a group
  double largest_ = 0;
  double room_ = 0;  // tokens of the longest sample that any group still takes
};

std::vector<int> longest_first(const std::vector<std::int64_t>& lengths) {
  std::vector<int> samples(lengths.size());
  std::iota(samples.begin(), samples.end(), 0);
  std::stable_sort(samples.begin(), samples.end(),
                   [&](int a, int b) { return lengths[a] > lengths[b]; });
  return samples;
}

// Moves the groups from the middle of the ranks on into a microbatch of their own; both then take
// all ranks. Returns the first half; `microbatch` keeps the second.
CpMicrobatch split(int ranks, CpMicrobatch& microbatch) {
  const auto middle =
      std::find_if(microbatch.begin(), microbatch.end(),
                   [ranks](const CpGroup& group) { return group.first_rank >= ranks / 2; });
  CpMicrobatch first(std::make_move_iterator(microbatch.begin()), std::make_move_iterator(middle));
  microbatch.erase(microbatch.begin(), middle);
  fill_ranks(ranks, first);
  fill_ranks(ranks, microbatch);
  return first;
}

}  // namespace

void check_batch(const CpLimits& limits, const std::vector<std::int64_t>& lengths) {
  const auto require = [](bool holds, const char* where, int found, const char* expected) {
    if (!holds)
      throw Error(Error::kInput,
                  {"DC1", where, fmt::to_string(found), expected, "correct the limits"});
  };
  require(is_power_of_two(limits.ranks) && limits.ranks <= kMostRanks, "ranks", limits.ranks,
          "a power of two, at most 2^20");
  require(is_power_of_two(limits.min_cp) && limits.min_cp <= limits.ranks, "min_cp", limits.min_cp,
          "a power of two, not above the ranks");
  require(limits.cap >= 1 && limits.cap <= kMostTokens, "cap", limits.cap, "1 to 2^20 tokens");
  require(limits.microbatch_group_size >= 0, "microbatch_group_size", limits.microbatch_group_size,
          "at least 0");
  require(limits.max_num_seqs >= 0, "max_num_seqs", limits.max_num_seqs, "at least 0");
  const std::int64_t most = static_cast<std::int64_t>(limits.ranks) * limits.cap;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] >= 1 && lengths[i] <= most) continue;
    throw Error(Error::kInput,
                {"DC2", fmt::format("length of sample {}", i), fmt::to_string(lengths[i]),
                 fmt::format("1 to {} = ranks * cap", most), "cut or drop the sample"});
  }
}

void fill_ranks(int ranks, CpMicrobatch& microbatch) {
  int used = 0;
  for (const CpGroup& group : microbatch) used += group.size;
  while (used < ranks) {
    const auto smallest =
        std::min_element(microbatch.begin(), microbatch.end(),
                         [](const CpGroup& a, const CpGroup& b) { return a.size < b.size; });
    used += smallest->size;
    smallest->size *= 2;
  }
  int rank = 0;
  for (CpGroup& group : microbatch) {
    group.first_rank = rank;
    rank += group.size;
  }
}

void align(const CpLimits& limits, CpSchedule& schedule) {
  const int unit = std::max(limits.microbatch_group_size, 1);
  const auto count = [&] { return static_cast<int>(schedule.size()); };
  int index = count() - 1;
  int failures = 0;
  while (count() % unit != 0) {
    if (schedule[index].size() >= 2) {
      CpMicrobatch first = split(limits.ranks, schedule[index]);
      schedule.push_back(std::move(first));
      failures = 0;
    } else {
      ++failures;
    }
    if (--index >= 0) continue;
    index = count() - 1;
    if (failures < count()) continue;
    const int wanted = (count() + unit - 1) / unit * unit;
    throw Error(Error::kInput,
                {"DC3", "alignment", fmt::format("{} groups in all microbatches", count()),
                 fmt::format("at least {}, a multiple of {} microbatches", wanted, unit),
                 "give the batch more or shorter sequences, or a smaller group size"});
  }
}

CpSchedule greedy_schedule(const CpLimits& limits, const std::vector<std::int64_t>& lengths) {
  check_batch(limits, lengths);
  std::vector<int> remaining = longest_first(lengths);
  std::vector<int> needed;
  needed.reserve(lengths.size());
  for (const std::int64_t length : lengths)
    needed.push_back(static_cast<int>(needed_cp(length, limits.cap, limits.min_cp)));
  CpSchedule schedule;
  while (!remaining.empty()) {
    Packing packing(limits, lengths[remaining.front()]);
    std::vector<int> later;
    for (const int sample : remaining) {
      if (!packing.add(sample, lengths[sample], needed[sample])) later.push_back(sample);
    }
    remaining = std::move(later);
    schedule.push_back(packing.finish());
  }
  align(limits, schedule);
  return schedule;
}

void check_schedule(const CpLimits& limits, const std::vector<std::int64_t>& lengths,
                    const CpSchedule& schedule) {
  check_batch(limits, lengths);
  const auto require = [](bool holds, const char* rule, const std::string& where,
                          const std::string& found, const std::string& expected) {
    if (!holds) throw Error(Error::kInput, {rule, where, found, expected, "correct the schedule"});
  };
  std::vector<int> seen(lengths.size());
  for (std::size_t m = 0; m < schedule.size(); ++m) {
    int rank = 0;
    int last_size = limits.ranks;
    for (const CpGroup& group : schedule[m]) {
      const std::string where = fmt::format("microbatch {}, group at rank {}", m, group.first_rank);
      require(is_power_of_two(group.size) && group.size >= limits.min_cp, "DS2", where,
              fmt::format("size {}", group.size),
              fmt::format("a power of two, at least {}", limits.min_cp));
      require(group.first_rank == rank && group.size <= last_size, "DS3", where,
              fmt::format("size {} after size {}", group.size, last_size),
              fmt::format("a group from rank {} on, not larger than the one before", rank));
      std::int64_t tokens = 0;
      for (const int sample : group.samples) {
        require(sample >= 0 && sample < static_cast<int>(seen.size()) && seen[sample]++ == 0, "DS1",
                where, fmt::format("sample {}", sample), "a sample that no other group has");
        tokens += lengths[sample];
      }
      require(!group.samples.empty(), "DS1", where, "no sample", "at least one");
      require(tokens <= static_cast<std::int64_t>(limits.cap) * group.size, "DS4", where,
              fmt::format("{} tokens", tokens),
              fmt::format("at most {} = cap * size", std::int64_t{limits.cap} * group.size));
      require(
          limits.max_num_seqs == 0 || static_cast<int>(group.samples.size()) <= limits.max_num_seqs,
          "DS5", where, fmt::format("{} sequences", group.samples.size()),
          fmt::format("at most {}", limits.max_num_seqs));
      rank += group.size;
      last_size = group.size;
    }
    require(rank == limits.ranks, "DS2", fmt::format("microbatch {}", m),
            fmt::format("{} ranks", rank), fmt::format("all {} ranks", limits.ranks));
  }
  const auto missing = std::find(seen.begin(), seen.end(), 0);
  require(missing == seen.end(), "DS1", "schedule",
          fmt::format("no sample {}", missing - seen.begin()), "every sample");
  require(limits.microbatch_group_size == 0 || schedule.size() % limits.microbatch_group_size == 0,
          "DS6", "schedule", fmt::format("{} microbatches", schedule.size()),
          fmt::format("a multiple of {}", limits.microbatch_group_size));
}

}  // namespace slotgraph
