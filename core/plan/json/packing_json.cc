#include "core/plan/json/packing_json.h"

namespace slotgraph {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 45;

std::vector<std::int64_t> read_bytes(const JsonReader& reader) {
  std::vector<std::int64_t> bytes;
  for (const JsonReader& each : reader.elements()) bytes.push_back(each.integer(0, kMostBytes));
  return bytes;
}

}  // namespace

LayerBytes layer_bytes_from_json(const JsonReader& reader) {
  LayerBytes bytes;
  for (const JsonReader& chunk : reader.elements()) bytes.push_back(read_bytes(chunk));
  return bytes;
}

}  // namespace slotgraph
