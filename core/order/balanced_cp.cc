#include "core/order/balanced_cp.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "core/error.h"
#include "core/order/microbatch_counts.h"

namespace slotgraph {
namespace {

constexpr int kTries = 4;  // numbers of microbatches

double cost_of(std::int64_t length, int size, const CpCost& cost) {
  const double tokens = static_cast<double>(length), ranks = size;
  return tokens * tokens / ranks + cost.communication * tokens * (ranks - 1) / ranks;
}

double cost_of(const CpGroup& group, const std::vector<std::int64_t>& lengths, const CpCost& cost) {
  double sum = 0;
  for (const int sample : group.samples) sum += cost_of(lengths[sample], group.size, cost);
  return sum;
}

// Sequences that get groups of one size.
struct SizeClass {
  int size;
  std::vector<int> samples;  // longest first
  int fewest_groups;         // for their tokens
};

class Spreader {
 public:
  Spreader(const CpLimits& limits, const std::vector<std::int64_t>& lengths, const CpCost& cost)
      : limits_(limits), lengths_(lengths), cost_(cost) {}

  // Every sequence gets at least `floor` ranks; the groups of that size are so many that all groups
  // fill `microbatches` ones. None if there are too few sequences, or too many groups.
  std::optional<CpSchedule> spread(int floor, int microbatches) const {
    std::map<int, SizeClass> classes = classes_of(floor);
    std::int64_t ranks = 0;
    for (const auto& [size, each] : classes) {
      if (size != floor) ranks += std::int64_t{each.fewest_groups} * size;
    }
    const std::int64_t free = std::int64_t{microbatches} * limits_.ranks - ranks;
    auto smallest = classes.find(floor);
    if (smallest != classes.end()) {
      const auto groups = static_cast<int>(std::min<std::int64_t>(
          free / floor, static_cast<std::int64_t>(smallest->second.samples.size())));
      if (groups < smallest->second.fewest_groups) return std::nullopt;
      smallest->second.fewest_groups = groups;
    } else if (free < 0) {
      return std::nullopt;
    }
    CpMicrobatch groups;
    for (const auto& [size, each] : classes) pack(each, groups);
    std::erase_if(groups, [](const CpGroup& group) { return group.samples.empty(); });
    if (static_cast<int>(groups.size()) < microbatches) return std::nullopt;
    // By cost, groups that take equally long meet; by size, they fit whenever any order does.
    std::stable_sort(groups.begin(), groups.end(), [this](const CpGroup& a, const CpGroup& b) {
      return cost_of(a, lengths_, cost_) > cost_of(b, lengths_, cost_);
    });
    if (auto schedule = deal(groups, microbatches)) return schedule;
    std::stable_sort(groups.begin(), groups.end(),
                     [](const CpGroup& a, const CpGroup& b) { return a.size > b.size; });
    return deal(groups, microbatches);
  }

  int fewest_microbatches() const {
    const std::int64_t tokens = std::accumulate(lengths_.begin(), lengths_.end(), std::int64_t{0});
    const std::int64_t each = std::int64_t{limits_.ranks} * limits_.cap;
    return static_cast<int>((tokens + each - 1) / each);
  }

 private:
  std::map<int, SizeClass> classes_of(int floor) const {
    std::vector<int> order(lengths_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [this](int a, int b) { return lengths_[a] > lengths_[b]; });
    std::map<int, SizeClass> classes;
    for (const int sample : order) {
      const int size = std::max<int>(
          floor, static_cast<int>(needed_cp(lengths_[sample], limits_.cap, limits_.min_cp)));
      SizeClass& each = classes.try_emplace(size, SizeClass{size, {}, 0}).first->second;
      each.samples.push_back(sample);
    }
    for (auto& [size, each] : classes) {
      std::int64_t tokens = 0;
      for (const int sample : each.samples) tokens += lengths_[sample];
      const std::int64_t room = std::int64_t{limits_.cap} * size;
      each.fewest_groups = static_cast<int>((tokens + room - 1) / room);
      const int sequences = static_cast<int>(each.samples.size());
      if (limits_.max_num_seqs > 0) {
        each.fewest_groups = std::max(
            each.fewest_groups, (sequences + limits_.max_num_seqs - 1) / limits_.max_num_seqs);
      }
    }
    return classes;
  }

  // Longest first into the group that has the least to do and has room; more groups if none has.
  void pack(const SizeClass& each, CpMicrobatch& groups) const {
    struct Load {
      double cost = 0;
      std::int64_t tokens = 0;
    };
    const std::size_t first = groups.size();
    groups.resize(first + each.fewest_groups, CpGroup{0, each.size, {}});
    std::vector<Load> loads(each.fewest_groups);
    for (const int sample : each.samples) {
      int best = -1;
      for (int i = 0; i < static_cast<int>(loads.size()); ++i) {
        const bool has_room =
            loads[i].tokens + lengths_[sample] <= std::int64_t{limits_.cap} * each.size;
        const auto sequences = static_cast<int>(groups[first + i].samples.size());
        const bool is_full = limits_.max_num_seqs > 0 && sequences >= limits_.max_num_seqs;
        if (has_room && !is_full && (best < 0 || loads[i].cost < loads[best].cost)) best = i;
      }
      if (best < 0) {
        best = static_cast<int>(loads.size());
        loads.emplace_back();
        groups.push_back({0, each.size, {}});
      }
      groups[first + best].samples.push_back(sample);
      loads[best].tokens += lengths_[sample];
      loads[best].cost += cost_of(lengths_[sample], each.size, cost_);
    }
  }

  // Each group into the first microbatch that has ranks for it.
  std::optional<CpSchedule> deal(const CpMicrobatch& groups, int microbatches) const {
    CpSchedule schedule(microbatches);
    std::vector<int> ranks(microbatches);
    for (const CpGroup& group : groups) {
      int m = 0;
      while (m < microbatches && ranks[m] + group.size > limits_.ranks) ++m;
      if (m == microbatches) return std::nullopt;
      ranks[m] += group.size;
      schedule[m].push_back(group);
    }
    return fill_empty(std::move(schedule));
  }

  // Microbatches without groups take one of those that have several.
  std::optional<CpSchedule> fill_empty(CpSchedule schedule) const {
    for (CpMicrobatch& microbatch : schedule) {
      if (!microbatch.empty()) continue;
      const auto richest =
          std::max_element(schedule.begin(), schedule.end(),
                           [](const auto& a, const auto& b) { return a.size() < b.size(); });
      if (richest->size() < 2) return std::nullopt;
      microbatch.push_back(std::move(richest->back()));
      richest->pop_back();
    }
    for (CpMicrobatch& microbatch : schedule) {
      std::stable_sort(microbatch.begin(), microbatch.end(),
                       [](const CpGroup& a, const CpGroup& b) { return a.size > b.size; });
      fill_ranks(limits_.ranks, microbatch);
    }
    return schedule;
  }

  const CpLimits& limits_;
  const std::vector<std::int64_t>& lengths_;
  const CpCost& cost_;
};

}  // namespace

double critical_path(const std::vector<std::int64_t>& lengths, const CpSchedule& schedule,
                     const CpCost& cost) {
  double sum = 0;
  for (const CpMicrobatch& microbatch : schedule) {
    double slowest = 0;
    for (const CpGroup& group : microbatch)
      slowest = std::max(slowest, cost_of(group, lengths, cost));
    sum += slowest;
  }
  return sum;
}

double shortest_critical_path(const CpLimits& limits, const std::vector<std::int64_t>& lengths,
                              const CpCost& cost) {
  double work = 0;
  for (const std::int64_t length : lengths) {
    const int size = static_cast<int>(needed_cp(length, limits.cap, limits.min_cp));
    work += size * cost_of(length, size, cost);
  }
  return work / limits.ranks;
}

CpSchedule balanced_schedule(const CpLimits& limits, const std::vector<std::int64_t>& lengths,
                             const CpCost& cost) {
  check_batch(limits, lengths);
  if (lengths.empty()) return {};
  std::optional<CpSchedule> best;
  double shortest = 0;
  const auto offer = [&](std::optional<CpSchedule> schedule) {
    if (!schedule) return;
    const double path = critical_path(lengths, *schedule, cost);
    if (best && path >= shortest) return;
    shortest = path;
    best = std::move(schedule);
  };
  try {
    offer(greedy_schedule(limits, lengths));
  } catch (const Error& error) {
    if (error.rule() != "DC3") throw;
  }
  const Spreader spreader(limits, lengths, cost);
  const int unit = std::max(limits.microbatch_group_size, 1);
  const int fewest = (spreader.fewest_microbatches() + unit - 1) / unit * unit;
  const std::int64_t bound = most_microbatches(
      BatchBound{static_cast<std::int64_t>(lengths.size()), limits.ranks, limits.cap, limits.min_cp,
                 *std::max_element(lengths.begin(), lengths.end()), limits.microbatch_group_size});
  // More microbatches than the fewest only make room for packing.
  const std::int64_t most =
      std::min<std::int64_t>(bound, std::int64_t{fewest} + std::int64_t{kTries - 1} * unit);
  for (int count = fewest; count <= most; count += unit)
    for (int floor = limits.min_cp; floor <= limits.ranks; floor *= 2)
      offer(spreader.spread(floor, count));
  if (best) return *best;
  throw Error(Error::kInput,
              {"DC3", "alignment", fmt::format("{} sequences", lengths.size()),
               fmt::format("enough for a multiple of {} microbatches with one each", unit),
               "give the batch more or shorter sequences, or a smaller group size"});
}

}  // namespace slotgraph
