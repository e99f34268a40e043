// Worker processes that are given typed requests and answer with typed replies, one JSON line each.
//
// A request and a reply are values with to_json and from_json as nlohmann::json finds them. The
// parent's side is Pool, the worker's is serve().
#ifndef FUZZ_PROCESS_POOL_H_
#define FUZZ_PROCESS_POOL_H_

#include <deque>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/process/child.h"

namespace slotgraph::fuzz {

// What becomes of a worker after its answer.
enum class After {
  kKeep,
  kRetire,  // it ends; the next request starts another one
};

// What came of a request.
template <typename Reply>
struct Outcome {
  std::optional<Reply> reply;  // none: the process ended instead
  Child::Answer answer;        // how it ended; and what it told before its answer (notes)
};

// The engine, without types.
class Workers {
 public:
  // `count` workers, each started from `command` with its first request. Their standard error is
  // this process's, or with a folder goes to a file there. A request that takes longer than
  // `patience_seconds` ends its worker; 0: there is no limit.
  Workers(const std::vector<std::string>& command, int count, const std::string& error_folder,
          double patience_seconds);

  using Next = std::function<std::optional<nlohmann::json>(std::size_t worker)>;
  using Take = std::function<After(std::size_t worker, const Child::Answer& answer)>;
  // Until nothing is left to do and every request has its answer: gives each idle worker the next
  // request, if it has one. `round` is called again and again in between, twice a second at least.
  void run(const Next& next, const Take& take, const std::function<void()>& round);
  // Ends the workers, which reach the end of their input. Exit codes of those that were running.
  std::vector<int> close();

 private:
  std::deque<Child> children_;
  double patience_;
};

template <typename Request, typename Reply>
class Pool {
 public:
  Pool(const std::vector<std::string>& command, int count, const std::string& error_folder = "",
       double patience_seconds = 0)
      : workers_(command, count, error_folder, patience_seconds),
        given_(static_cast<std::size_t>(count)) {}

  using Next = std::function<std::optional<Request>(std::size_t worker)>;
  using Take =
      std::function<After(std::size_t worker, const Request& given, const Outcome<Reply>& outcome)>;
  // As Workers::run.
  void run(
      const Next& next, const Take& take, const std::function<void()>& round = [] {}) {
    workers_.run(
        [&](std::size_t worker) -> std::optional<nlohmann::json> {
          given_[worker] = next(worker);
          if (!given_[worker]) return std::nullopt;
          return nlohmann::json(*given_[worker]);
        },
        [&](std::size_t worker, const Child::Answer& answer) {
          Outcome<Reply> outcome{std::nullopt, answer};
          if (!answer.json.is_null()) outcome.reply = answer.json.get<Reply>();
          return take(worker, *given_[worker], outcome);
        },
        round);
  }
  std::vector<int> close() { return workers_.close(); }

 private:
  Workers workers_;
  std::vector<std::optional<Request>> given_;
};

// What a worker tells before its answer.
void tell(const nlohmann::json& note);

// The worker's side: answers every request on standard input, until its end. `answer` takes a
// Request and returns a Reply, or throws, which ends the process.
template <typename Request, typename Answer>
void serve(const Answer& answer) {
  for (std::string line; std::getline(std::cin, line);) {
    const nlohmann::json reply = answer(nlohmann::json::parse(line).get<Request>());
    std::cout << reply.dump() << std::endl;
  }
}

}  // namespace slotgraph::fuzz

#endif  // FUZZ_PROCESS_POOL_H_
