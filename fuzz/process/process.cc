#include "fuzz/process/process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

extern char** environ;

namespace slotgraph::fuzz {
namespace {

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "pipe");
  return ends;
}

}  // namespace

Process::Process(const std::vector<std::string>& command, const std::string& error_file) {
  const auto to_child = make_pipe();
  const auto from_child = make_pipe();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to_child[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from_child[1], STDOUT_FILENO);
  if (!error_file.empty()) {
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, error_file.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0644);
  }
  // Ctrl-C goes to the parent alone, which closes the children's input.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const int error =
      ::posix_spawn(&child_, command[0].c_str(), &actions, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  ::close(to_child[0]);
  ::close(from_child[1]);
  input_ = to_child[1];
  output_ = from_child[0];
  if (error != 0) {
    ::close(input_);
    ::close(output_);
    throw std::system_error(error, std::generic_category(), "cannot start " + command[0]);
  }
  ::fcntl(output_, F_SETFL, O_NONBLOCK);
}

Process::~Process() {
  close_input();
  if (child_ > 0) {
    kill();
    wait();
  }
  ::close(output_);
}

bool Process::read_lines(std::vector<std::string>& lines) {
  std::array<char, 1 << 16> buffer{};
  for (;;) {
    const ssize_t size = ::read(output_, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return true;
    if (size <= 0) return false;
    rest_.append(buffer.data(), static_cast<std::size_t>(size));
    for (std::size_t end; (end = rest_.find('\n')) != std::string::npos; rest_.erase(0, end + 1)) {
      lines.push_back(rest_.substr(0, end));
    }
  }
}

bool Process::write_line(const std::string& line) {
  const std::string text = line + "\n";
  ssize_t size = -1;
  do {
    size = ::write(input_, text.data(), text.size());  // far below PIPE_BUF: all or nothing
  } while (size < 0 && errno == EINTR);
  return size == static_cast<ssize_t>(text.size());
}

void Process::close_input() {
  if (input_ >= 0) ::close(input_);
  input_ = -1;
}

void Process::kill() {
  if (child_ > 0) ::kill(child_, SIGKILL);
}

int Process::wait() {
  int status = 0;
  while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) {
  }
  child_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace slotgraph::fuzz
