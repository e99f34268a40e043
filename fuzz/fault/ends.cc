#include "fuzz/fault/ends.h"

#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <set>
#include <span>

#include "core/exit_code.h"
#include "core/json_reader.h"
#include "fuzz/fault/trial.h"

namespace slotgraph::fuzz {
namespace {

constexpr int kAborted = 128 + 6;

constexpr const char* kTerminate = "terminate called";
constexpr const char* kFatal = "slotgraph: fatal:";
constexpr const char* kUpstream = ", upstream: ";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The note of an ELF file that the linker made of its contents; empty: it has none.
std::string build_id_in(std::span<const char> notes) {
  constexpr std::size_t alignment = 4;
  const auto padded = [](std::size_t bytes) {
    return (bytes + alignment - 1) / alignment * alignment;
  };
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) head;
    std::memcpy(&head, notes.data(), sizeof head);
    const std::size_t name = sizeof head, bytes = name + padded(head.n_namesz);
    const std::size_t end = bytes + padded(head.n_descsz);
    if (end > notes.size()) break;
    if (head.n_type == NT_GNU_BUILD_ID && std::memcmp(notes.data() + name, "GNU", 4) == 0) {
      std::string text;
      for (const char byte : notes.subspan(bytes, head.n_descsz))
        text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
      return text;
    }
    notes = notes.subspan(end);
  }
  return "";
}

}  // namespace

std::map<std::string, std::string> build_ids() {
  std::map<std::string, std::string> ids;
  const auto visit = [](dl_phdr_info* info, std::size_t, void* result) {
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const ElfW(Phdr)& part = info->dlpi_phdr[i];
      if (part.p_type != PT_NOTE) continue;
      const auto* const begin = reinterpret_cast<const char*>(info->dlpi_addr + part.p_vaddr);
      const std::string id = build_id_in({begin, part.p_memsz});
      if (!id.empty())
        (*static_cast<decltype(ids)*>(result))[std::filesystem::path(info->dlpi_name).filename()] =
            id;
    }
    return 0;
  };
  ::dl_iterate_phdr(visit, &ids);
  return ids;
}

FatalTable FatalTable::read(const std::string& path) {
  const nlohmann::json json = read_json_file(path);
  const JsonReader reader(json, path);
  const std::map<std::string, std::string> here = build_ids();
  FatalTable table;
  std::set<std::string> others;
  for (const JsonReader& library : reader.field("libraries").elements()) {
    const auto found = here.find(library.field("name").text());
    const std::string expected = library.field("build_id").text();
    if (found == here.end() || found->second == expected) continue;
    others.insert(found->first);
    table.warnings_.push_back(
        fmt::format("{}: found {} of build {}, expected build {}: where it ends the process is not "
                    "known, and counts as violated; find the offsets of this build (`--points "
                    "cudaGetDevice` shows each with its stack) and set them and the id",
                    library.path(), found->first, found->second, expected));
  }
  for (const JsonReader& row : reader.field("points").elements()) {
    const std::string call = row.field("call").text(), symbol = row.field("symbol").text();
    if (!row.has("library")) {
      table.rows_.push_back({call, symbol});
      continue;
    }
    const std::string library = row.field("library").text();
    const std::string offset = row.field("offset").text();
    if (!others.contains(library)) table.rows_.push_back({call, library + "+" + offset});
  }
  return table;
}

std::string FatalTable::find(const std::vector<std::string>& stack) const {
  for (const Row& row : rows_) {
    const auto inside = [&](const std::string& frame) {
      return frame.find(row.frame) != std::string::npos;
    };
    if (!stack.empty() && row.call == stack.front() &&
        std::any_of(stack.begin(), stack.end(), inside))
      return row.frame;
  }
  return "";
}

bool End::is_fatal() const { return code == kInternal && contains(errors, kFatal); }

bool is_upstream(const std::string& kind) { return contains(kind, kUpstream); }

// Two ends are of one kind if they have one cause, wherever the numbers in their messages differ:
// the place in libtorch if the table knows it, else the line that terminate or the runtime printed,
// else the code alone. A place is asked for only where libtorch itself gave up (terminate after an
// exception), or any crash under such a frame would count as known.
std::string kind_of_end(const End& end, const FatalTable& table) {
  const bool terminated = end.code == kAborted && contains(end.errors, kTerminate);
  const std::string row = terminated ? table.find(end.stack) : "";
  if (!row.empty()) return fmt::format("code {}{}{}", end.code, kUpstream, row);
  for (const char* const sign : {kTerminate, kFatal}) {
    if (const std::size_t begin = end.errors.find(sign); begin != std::string::npos)
      return fmt::format("code {}, {}", end.code,
                         without_numbers(first_line(end.errors.substr(begin))));
  }
  return fmt::format("code {}", end.code);
}

std::string without_numbers(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool hexadecimal = text.compare(i, 2, "0x") == 0;
    if (std::isdigit(static_cast<unsigned char>(text[i])) == 0) {
      result += text[i];
      continue;
    }
    if (hexadecimal) ++i;
    const auto part = [&](char c) {
      const auto letter = static_cast<unsigned char>(c);
      return (hexadecimal ? std::isxdigit(letter) : std::isdigit(letter)) != 0;
    };
    while (i + 1 < text.size() && part(text[i + 1])) ++i;
    result += '#';
  }
  return result;
}

}  // namespace slotgraph::fuzz
