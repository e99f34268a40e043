// Files that are whole or absent.
#ifndef CORE_FILES_H_
#define CORE_FILES_H_

#include <string>

namespace slotgraph {

// Writes `text` to a temporary name beside `path` and renames it, making the folder if needed.
// Throws Error F03 and leaves nothing behind. A device or pipe is written to as it is.
void write_file(const std::string& path, const std::string& text);

// The absolute form of a path from a command line: relative ones are meant from
// BUILD_WORKING_DIRECTORY, the folder in which `bazel run` was called.
std::string from_caller(const std::string& path);

// Appends whole lines. A line that cannot be written is taken back before the exception leaves.
class LineFile {
 public:
  // Creates or empties the file. Throws Error F03.
  explicit LineFile(std::string path);
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;
  void append(const std::string& line);

 private:
  std::string path_;
  int descriptor_;
  long size_ = 0;
};

}  // namespace slotgraph

#endif  // CORE_FILES_H_
