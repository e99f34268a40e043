#include "fuzz/process/pool.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "fuzz/process/program.h"

namespace slotgraph::fuzz {
struct Number {
  int value = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Number, value)

struct Answer {
  int value = 0;
  int process = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Answer, value, process)

namespace {

// Answers with the number and the shell's process id; tells a note first; 13 ends it with code 3,
// 99 hangs.
constexpr const char* kWorker = R"(
while read line; do
  number=${line#*:}; number=${number%\}}
  echo '{"note": "at '$number'"}'
  if [ "$number" = 13 ]; then echo unlucky >&2; exit 3; fi
  if [ "$number" = 99 ]; then exec sleep 100; fi
  echo '{"value": '$number', "process": '$$'}'
done
exit 5
)";

struct PoolTest : testing::Test {
  using Numbers = Pool<Number, Answer>;
  Numbers pool(int count, double patience = 0) {
    return {{"/bin/sh", "-c", kWorker}, count, errors.path(), patience};
  }
  // What came of each number.
  std::map<int, Outcome<Answer>> run(Numbers& pool, std::vector<int> numbers,
                                     After after = After::kKeep) {
    std::map<int, Outcome<Answer>> outcomes;
    std::size_t next = 0;
    pool.run(
        [&](std::size_t) -> std::optional<Number> {
          if (next == numbers.size()) return std::nullopt;
          return Number{numbers[next++]};
        },
        [&](std::size_t, const Number& given, const Outcome<Answer>& outcome) {
          outcomes[given.value] = outcome;
          return after;
        });
    return outcomes;
  }
  static std::set<int> processes(const std::map<int, Outcome<Answer>>& outcomes) {
    std::set<int> ids;
    for (const auto& [number, outcome] : outcomes) ids.insert(outcome.reply.value().process);
    return ids;
  }

  TemporaryFolder errors;
};

TEST_F(PoolTest, EveryRequestHasItsReply) {
  Numbers two = pool(2);
  std::vector<int> numbers(40);
  for (int i = 0; i < 40; ++i) numbers[i] = 100 + i;
  const auto outcomes = run(two, numbers);
  ASSERT_EQ(outcomes.size(), 40u);
  for (const auto& [number, outcome] : outcomes) {
    EXPECT_EQ(outcome.reply.value().value, number);
    EXPECT_EQ(outcome.answer.notes, std::vector<nlohmann::json>{"at " + std::to_string(number)});
  }
  EXPECT_LE(processes(outcomes).size(), 2u);
  for (const int id : processes(run(two, {7, 8})))
    EXPECT_TRUE(processes(outcomes).contains(id)) << "workers stay for the next run";
  EXPECT_EQ(two.close(), (std::vector<int>{5, 5})) << "exit codes at the end of the input";
  EXPECT_EQ(two.close(), std::vector<int>{}) << "nobody runs any more";
}

TEST_F(PoolTest, ARetiredWorkerIsReplaced) {
  Numbers one = pool(1);
  EXPECT_EQ(processes(run(one, {1, 2, 3}, After::kKeep)).size(), 1u);
  EXPECT_EQ(processes(run(one, {1, 2, 3}, After::kRetire)).size(), 3u);
}

TEST_F(PoolTest, AWorkerThatDiesIsReplacedAndTheOthersAnswer) {
  Numbers one = pool(1);
  const auto outcomes = run(one, {1, 13, 2});
  const Outcome<Answer>& dead = outcomes.at(13);
  EXPECT_FALSE(dead.reply);
  EXPECT_EQ(dead.answer.code, 3);
  EXPECT_EQ(dead.answer.errors, "unlucky\n");
  EXPECT_EQ(dead.answer.notes.size(), 1u);
  EXPECT_FALSE(dead.answer.timed_out);
  EXPECT_EQ(outcomes.at(2).reply.value().value, 2);
}

TEST_F(PoolTest, AWorkerThatIsSilentForTooLongIsKilled) {
  Numbers one = pool(1, /*patience=*/0.2);
  const auto outcomes = run(one, {99, 2});
  EXPECT_FALSE(outcomes.at(99).reply);
  EXPECT_TRUE(outcomes.at(99).answer.timed_out);
  EXPECT_EQ(outcomes.at(2).reply.value().value, 2);
}

}  // namespace
}  // namespace slotgraph::fuzz
