#include "core/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/error.h"

namespace slotgraph {
namespace {

[[noreturn]] void fail(const std::string& path, int error) {
  throw Error(Error::kFile, {"F03", path, std::strerror(error), "a file that can be written",
                             "choose a folder with space and permission (--out)"});
}

// Writes all bytes or returns false with errno set.
bool write_all(int descriptor, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = ::write(descriptor, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    done += static_cast<std::size_t>(written);
  }
  return true;
}

void make_folder_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error) fail(folder, error.value());
}

// A device, pipe or socket: a rename would replace it.
bool is_special(const std::string& path) {
  std::error_code error;
  const auto type = std::filesystem::status(path, error).type();
  return type == std::filesystem::file_type::character ||
         type == std::filesystem::file_type::block || type == std::filesystem::file_type::fifo ||
         type == std::filesystem::file_type::socket;
}

void write_into(const std::string& path, const std::string& text) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) fail(path, errno);
  const bool written = write_all(descriptor, text);
  const int error = errno;
  ::close(descriptor);
  if (!written) fail(path, error);
}

}  // namespace

void write_file(const std::string& path, const std::string& text) {
  if (is_special(path)) return write_into(path, text);
  make_folder_of(path);
  const std::string temporary = path + ".part";
  const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) fail(path, errno);
  const bool written = write_all(descriptor, text);
  int error = errno;
  const bool closed = ::close(descriptor) == 0;
  if (written && !closed) error = errno;
  if (written && closed && ::rename(temporary.c_str(), path.c_str()) == 0) return;
  if (written && closed) error = errno;
  ::unlink(temporary.c_str());
  fail(path, error);
}

std::string from_caller(const std::string& path) {
  const char* const caller = std::getenv("BUILD_WORKING_DIRECTORY");
  return caller ? std::filesystem::path(caller) / path : std::filesystem::absolute(path);
}

LineFile::LineFile(std::string path) : path_(std::move(path)) {
  make_folder_of(path_);
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail(path_, errno);
}

LineFile::~LineFile() { ::close(descriptor_); }

void LineFile::append(const std::string& line) {
  if (write_all(descriptor_, line + "\n")) {
    size_ += static_cast<long>(line.size()) + 1;
    return;
  }
  const int error = errno;
  if (::ftruncate(descriptor_, size_) != 0) fail(path_, errno);
  fail(path_, error);
}

}  // namespace slotgraph
