#include "core/emulation/scheduler.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace slotgraph::emulation {
namespace {

using Order = std::vector<TaskId>;
using Dag = std::vector<Order>;  // for each task, from 1, the earlier tasks that it waits for

TaskId run_one(Scheduler& scheduler) {
  const TaskId task = scheduler.next().id;
  scheduler.finish(task);
  return task;
}

Order run_all(Scheduler& scheduler) {
  Order order;
  while (scheduler.has_ready()) order.push_back(run_one(scheduler));
  return order;
}

Order order_of(const Dag& dag, std::uint64_t seed) {
  Scheduler scheduler;
  scheduler.set_seed(seed);
  for (const Order& dependencies : dag) scheduler.submit({}, dependencies);
  Order order = run_all(scheduler);
  EXPECT_EQ(scheduler.pending(), 0u);
  return order;
}

bool allowed(const Dag& dag, const Order& order) {
  if (order.size() != dag.size()) return false;
  std::set<TaskId> done;
  for (TaskId task : order) {
    for (TaskId dependency : dag[task - 1]) {
      if (!done.contains(dependency)) return false;
    }
    done.insert(task);
  }
  return done.size() == dag.size();
}

std::set<Order> allowed_orders(const Dag& dag) {
  std::set<Order> result;
  Order order;
  for (TaskId task = 1; task <= dag.size(); ++task) order.push_back(task);
  do {
    if (allowed(dag, order)) result.insert(order);
  } while (std::next_permutation(order.begin(), order.end()));
  return result;
}

// Every graph of four tasks: six possible edges.
std::vector<Dag> small_dags() {
  std::vector<Dag> result;
  for (unsigned int edges = 0; edges < 64; ++edges) {
    Dag dag(4);
    unsigned int bit = 0;
    for (TaskId to = 2; to <= 4; ++to) {
      for (TaskId from = 1; from < to; ++from) {
        if (edges >> bit++ & 1) dag[to - 1].push_back(from);
      }
    }
    result.push_back(dag);
  }
  return result;
}

TEST(SchedulerExhaustive, SeedsReachEveryAllowedOrderAndNoOther) {
  for (const Dag& dag : small_dags()) {
    std::set<Order> found;
    for (std::uint64_t seed = 1; seed <= 500; ++seed) found.insert(order_of(dag, seed));
    EXPECT_EQ(found, allowed_orders(dag));
  }
}

TEST(SchedulerExhaustive, SeedZeroIsTheOldestReadyTaskFirst) {
  for (const Dag& dag : small_dags()) EXPECT_EQ(order_of(dag, 0), *allowed_orders(dag).begin());
}

TEST(Scheduler, SameSeedIsTheSameOrder) {
  const Dag dag(8);
  std::set<Order> orders;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_EQ(order_of(dag, seed), order_of(dag, seed));
    orders.insert(order_of(dag, seed));
  }
  EXPECT_EQ(orders.size(), 20u);
}

TEST(Scheduler, FinishedUnknownAndNoDependenciesHoldNothingUp) {
  Scheduler scheduler;
  const TaskId first = scheduler.submit({}, {});
  EXPECT_EQ(run_one(scheduler), first);
  EXPECT_FALSE(scheduler.is_pending(first));
  EXPECT_FALSE(scheduler.is_pending(0));
  const TaskId second = scheduler.submit({}, {first, 0, 999});
  EXPECT_TRUE(scheduler.is_pending(second));
  EXPECT_EQ(run_one(scheduler), second);
}

TEST(Scheduler, RepeatedDependencyCountsOnce) {
  Scheduler scheduler;
  const TaskId first = scheduler.submit({}, {});
  const TaskId second = scheduler.submit({}, {first, first});
  EXPECT_EQ(run_all(scheduler), (Order{first, second}));
}

TEST(Scheduler, RunningTaskStillHoldsItsDependents) {
  Scheduler scheduler;
  const TaskId first = scheduler.submit({}, {});
  const TaskId second = scheduler.submit({}, {first});
  EXPECT_EQ(scheduler.next().id, first);
  EXPECT_FALSE(scheduler.has_ready());
  EXPECT_TRUE(scheduler.is_pending(first));
  const TaskId third = scheduler.submit({}, {first});
  scheduler.finish(first);
  EXPECT_EQ(run_all(scheduler), (Order{second, third}));
  EXPECT_EQ(scheduler.finished(), 3u);
}

TEST(Scheduler, NextHandsOverTheWork) {
  Scheduler scheduler;
  Work work;
  work.kind = Work::Kind::kFill;
  work.bytes = 7;
  scheduler.submit(work, {});
  const Scheduler::Running running = scheduler.next();
  EXPECT_EQ(running.work.kind, Work::Kind::kFill);
  EXPECT_EQ(running.work.bytes, 7u);
}

TEST(Scheduler, DropForgetsWaitingAndRunningWork) {
  Scheduler scheduler;
  Work kept;
  kept.keep_alive = std::make_shared<int>(1);
  const std::weak_ptr<const void> alive = kept.keep_alive;
  const TaskId first = scheduler.submit({}, {});
  const TaskId second = scheduler.submit(std::move(kept), {first});
  const TaskId ready = scheduler.submit({}, {});
  EXPECT_EQ(scheduler.next().id, first);
  {
    const std::vector<Work> dropped = scheduler.drop();
    EXPECT_FALSE(alive.expired());  // the caller decides when it dies
  }
  EXPECT_TRUE(alive.expired());
  scheduler.finish(first);
  EXPECT_EQ(scheduler.pending(), 0u);
  EXPECT_FALSE(scheduler.is_pending(second));
  EXPECT_FALSE(scheduler.is_pending(ready));
  EXPECT_FALSE(scheduler.has_ready());
  const TaskId third = scheduler.submit({}, {second});
  EXPECT_EQ(run_all(scheduler), Order{third});
}

TEST(Scheduler, SeedZeroTakesNoChances) {
  Scheduler scheduler;
  EXPECT_FALSE(scheduler.adversarial());
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(scheduler.chance(1));
  scheduler.set_seed(1);
  EXPECT_TRUE(scheduler.adversarial());
  EXPECT_TRUE(scheduler.chance(1));
}

// Submission and running interleave, as they do between synchronisations.
RC_GTEST_PROP(SchedulerProperty, DependenciesHoldUnderEverySeed, ()) {
  Scheduler scheduler;
  scheduler.set_seed(*rc::gen::arbitrary<std::uint64_t>());
  const auto count = *rc::gen::inRange<TaskId>(1, 40);
  Dag dag;
  Order order;
  for (TaskId task = 1; task <= count; ++task) {
    dag.push_back(*rc::gen::container<Order>(rc::gen::inRange<TaskId>(0, task)));
    std::erase(dag.back(), 0u);
    RC_ASSERT(scheduler.submit({}, dag.back()) == task);
    if (scheduler.has_ready() && *rc::gen::arbitrary<bool>()) order.push_back(run_one(scheduler));
  }
  for (TaskId task : run_all(scheduler)) order.push_back(task);
  RC_ASSERT(allowed(dag, order));
  RC_ASSERT(scheduler.pending() == 0u);
  RC_ASSERT(scheduler.finished() == count);
}

RC_GTEST_PROP(SchedulerProperty, SeedZeroKeepsTheSubmissionOrder, ()) {
  Dag dag;
  Order expected;
  for (TaskId task = 1; task <= 20; ++task) {
    dag.push_back(*rc::gen::container<Order>(rc::gen::inRange<TaskId>(0, task)));
    expected.push_back(task);
  }
  RC_ASSERT(order_of(dag, 0) == expected);
}

}  // namespace
}  // namespace slotgraph::emulation
