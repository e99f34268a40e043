#include "core/plan/tool/draw.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <pugixml.hpp>
#include <sstream>
#include <vector>

#include "core/error.h"

namespace slotgraph {
namespace {

constexpr double kMiB = 1 << 20;
constexpr double kLeft = 130, kTop = 74, kRight = 20, kRowGap = 1;
constexpr double kArenasHeight = 520, kGradientRow = 14, kCurveHeight = 110;

std::string human(std::int64_t bytes, bool unit) {
  if (unit) return fmt::format("{}", bytes);
  return bytes < 1 << 20 ? fmt::format("{} B", bytes)
                         : fmt::format("{:.1f} MiB", static_cast<double>(bytes) / kMiB);
}

// Hues apart from each other for any number of chunks.
std::string colour_of(int chunk, int chunks, int layer) {
  return fmt::format("hsl({}, 62%, {}%)", chunk * 360 / chunks, 52 + layer % 4 * 7);
}

class Drawing {
 public:
  Drawing(const Plan& plan, const LayerBytes& bytes, int microbatches)
      : plan_(plan),
        bytes_(bytes),
        microbatches_(microbatches),
        events_(events(training_order(plan.shape, microbatches))),
        width_(std::clamp(14.0 * static_cast<double>(events_.size()), 640.0, 1800.0)) {
    svg_ = document_.append_child("svg");
    svg_.append_attribute("xmlns") = "http://www.w3.org/2000/svg";
    svg_.append_attribute("font-family") = "sans-serif";
    svg_.append_attribute("font-size") = "11";
    for (const auto& chunk : bytes)
      unit_ = unit_ && std::all_of(chunk.begin(), chunk.end(), [](auto b) { return b == 1; });
    measure_arenas();
  }

  std::string run() {
    const double gradients = kTop + kArenasHeight + 12;
    const double curve = gradients + kGradientRow * gradient_arenas_ + 12;
    const double height = curve + kCurveHeight + 48;
    size(kLeft + width_ + kRight, height);
    header();
    arena_rows();
    gradient_rows(gradients);
    live_bytes(curve);
    legend(curve + kCurveHeight + 42);
    std::ostringstream text;
    document_.save(text, " ", pugi::format_default | pugi::format_no_declaration);
    return text.str();
  }

 private:
  double x(int event) const { return kLeft + width_ * event / static_cast<double>(events_.size()); }

  void measure_arenas() {
    for (int i = 0; i < plan_.frames(); ++i) {
      const Slot& slot = plan_.slots[i];
      arena_bytes_.resize(std::max<std::size_t>(arena_bytes_.size(), slot.colour + 1));
      auto& arena = arena_bytes_[slot.colour];
      arena = std::max(arena, bytes_[slot.model_chunk][slot.layer]);
    }
    for (const auto& chunk : plan_.gradient_colours)
      for (const int colour : chunk) gradient_arenas_ = std::max(gradient_arenas_, colour + 1);
    for (const std::int64_t bytes : arena_bytes_) total_ += bytes;
    double y = kTop;
    for (const std::int64_t bytes : arena_bytes_) {
      arena_y_.push_back(y);
      y += kArenasHeight * static_cast<double>(bytes) /
           static_cast<double>(std::max<std::int64_t>(1, total_));
    }
    arena_y_.push_back(y);
  }

  void size(double width, double height) {
    svg_.append_attribute("width") = width;
    svg_.append_attribute("height") = height;
    svg_.append_attribute("viewBox") = fmt::format("0 0 {} {}", width, height).c_str();
    rectangle(0, 0, width, height, "white");
  }

  pugi::xml_node rectangle(double x, double y, double width, double height,
                           const std::string& fill) {
    pugi::xml_node node = svg_.append_child("rect");
    const auto set = [&](const char* name, double value) {
      node.append_attribute(name) = fmt::format("{:.2f}", value).c_str();
    };
    set("x", x);
    set("y", y);
    set("width", width);
    set("height", height);
    node.append_attribute("fill") = fill.c_str();
    return node;
  }

  void text(double x, double y, const std::string& content, const char* anchor = "start",
            int size = 11) {
    pugi::xml_node node = svg_.append_child("text");
    node.append_attribute("x") = fmt::format("{:.2f}", x).c_str();
    node.append_attribute("y") = fmt::format("{:.2f}", y).c_str();
    node.append_attribute("text-anchor") = anchor;
    node.append_attribute("font-size") = size;
    node.text() = content.c_str();
  }

  static void title(pugi::xml_node node, const std::string& content) {
    node.append_child("title").text() = content.c_str();
  }

  void header() {
    const PipelineShape& shape = plan_.shape;
    text(
        12, 22,
        fmt::format("{}: {} microbatches", plan_.name.empty() ? "plan" : plan_.name, microbatches_),
        "start", 15);
    text(
        12, 40,
        fmt::format("pipeline {} rank {}, {} chunks, ring {}, CP sizes {}: {} frames in {} arenas, "
                    "{} together; {} gradient arenas",
                    shape.pipeline_size, shape.rank, plan_.chunks(), plan_.ring_length,
                    fmt::join(plan_.cp_sizes, " "), plan_.frames(), arena_bytes_.size(),
                    human(total_, unit_), gradient_arenas_));
    text(12, 56,
         fmt::format("a row is an arena{}; a bar is a frame from its forward to its backward; "
                     "gradient arenas are not counted",
                     unit_ ? "" : ", as high as its bytes"));
  }

  void arena_rows() {
    double last_label = 0;
    for (std::size_t arena = 0; arena < arena_bytes_.size(); ++arena) {
      const double y = arena_y_[arena], height = arena_y_[arena + 1] - y;
      rectangle(kLeft, y, width_, std::max(height - kRowGap, 0.3), "#f0f1f3");
      const double middle = y + height / 2 + 4;
      if (middle - last_label < 11) continue;
      text(kLeft - 6, middle,
           fmt::format("arena {} ({})", arena, human(arena_bytes_[arena], unit_)), "end", 10);
      last_label = middle;
    }
    std::vector<std::vector<int>> begin(plan_.chunks());  // events, oldest first
    for (int i = 0; i < static_cast<int>(events_.size()); ++i) {
      const OrderEvent& event = events_[i];
      if (event.forward) {
        begin[event.chunk].push_back(i);
        continue;
      }
      const int first = begin[event.chunk].front();
      begin[event.chunk].erase(begin[event.chunk].begin());
      for (int layer = 0; layer < plan_.layers_per_chunk[event.chunk]; ++layer)
        bar(event, layer, first, i);
    }
  }

  void bar(const OrderEvent& event, int layer, int begin, int end) {
    const int slot = plan_.slot_of(event.microbatch);
    const int arena = plan_.slots[plan_.frame(event.chunk, slot, layer)].colour;
    const double y = arena_y_[arena];
    const std::int64_t bytes = bytes_[event.chunk][layer];
    const double height = (arena_y_[arena + 1] - y) * static_cast<double>(bytes) /
                          static_cast<double>(std::max<std::int64_t>(1, arena_bytes_[arena]));
    pugi::xml_node node =
        rectangle(x(begin), y, x(end + 1) - x(begin) - 0.6, std::max(height - kRowGap, 0.3),
                  colour_of(event.chunk, plan_.chunks(), layer));
    node.append_attribute("class") = "frame";
    title(node,
          fmt::format("chunk {} slot {} layer {}, microbatch {}: events {} to {}, arena {}, {}",
                      event.chunk, slot, layer, event.microbatch, begin, end, arena,
                      human(bytes, unit_)));
  }

  // A returned gradient lives until the next backward event has ended.
  void gradient_rows(double top) {
    for (int arena = 0; arena < gradient_arenas_; ++arena) {
      const double y = top + kGradientRow * arena;
      rectangle(kLeft, y, width_, kGradientRow - kRowGap, "#f0f1f3");
      text(kLeft - 6, y + 10, fmt::format("gradient arena {}", arena), "end", 10);
    }
    for (int i = 0; i < static_cast<int>(events_.size()); ++i) {
      const OrderEvent& event = events_[i];
      if (event.forward || plan_.layers_per_chunk[event.chunk] == 0) continue;
      int end = i + 1;
      while (end < static_cast<int>(events_.size()) && events_[end].forward) ++end;
      end = std::min(end, static_cast<int>(events_.size()) - 1);
      const int slot = plan_.slot_of(event.microbatch);
      const int arena = plan_.gradient_colours[event.chunk][slot];
      pugi::xml_node node =
          rectangle(x(i), top + kGradientRow * arena, x(end + 1) - x(i) - 0.6,
                    kGradientRow - kRowGap, colour_of(event.chunk, plan_.chunks(), 0));
      node.append_attribute("class") = "gradient";
      title(node, fmt::format("gradient of chunk {} slot {}, microbatch {}", event.chunk, slot,
                              event.microbatch));
    }
  }

  void live_bytes(double top) {
    std::vector<std::int64_t> of_chunk;
    for (const auto& chunk : bytes_) {
      of_chunk.push_back(0);
      for (const std::int64_t each : chunk) of_chunk.back() += each;
    }
    const double scale = kCurveHeight / static_cast<double>(std::max<std::int64_t>(1, total_));
    const double bottom = top + kCurveHeight;
    std::string points = fmt::format("{:.2f},{:.2f}", kLeft, bottom);
    std::int64_t live = 0, peak = 0;
    for (int i = 0; i < static_cast<int>(events_.size()); ++i) {
      // A frame is live during its forward and its backward.
      if (events_[i].forward) live += of_chunk[events_[i].chunk];
      peak = std::max(peak, live);
      const double y = bottom - scale * static_cast<double>(live);
      points += fmt::format(" {:.2f},{:.2f} {:.2f},{:.2f}", x(i), y, x(i + 1), y);
      if (!events_[i].forward) live -= of_chunk[events_[i].chunk];
    }
    points += fmt::format(" {:.2f},{:.2f}", kLeft + width_, bottom);
    rectangle(kLeft, top, width_, kCurveHeight, "#f0f1f3");
    pugi::xml_node area = svg_.append_child("polygon");
    area.append_attribute("points") = points.c_str();
    area.append_attribute("fill") = "#7a8699";
    text(kLeft - 6, top + 10, fmt::format("arenas {}", human(total_, unit_)), "end", 10);
    text(kLeft - 6, std::max(bottom - scale * static_cast<double>(peak) + 4, top + 22),
         fmt::format("peak {}", human(peak, unit_)), "end", 10);
    text(kLeft - 6, bottom, "live", "end", 10);
    text(kLeft - 6, bottom + 13, "event", "end", 10);
    const int step = std::max(1, static_cast<int>(events_.size()) / 8);
    for (int event = 0; event < static_cast<int>(events_.size()); event += step)
      text(x(event), bottom + 13, fmt::to_string(event), "start", 10);
  }

  void legend(double y) {
    double at = kLeft;
    for (int chunk = 0; chunk < plan_.chunks(); ++chunk, at += 72) {
      rectangle(at, y - 22, 10, 10, colour_of(chunk, plan_.chunks(), 0));
      text(at + 14, y - 13, fmt::format("chunk {}", chunk), "start", 10);
    }
  }

  const Plan& plan_;
  const LayerBytes& bytes_;
  int microbatches_;
  std::vector<OrderEvent> events_;
  double width_;
  bool unit_ = true;
  std::vector<std::int64_t> arena_bytes_;
  std::vector<double> arena_y_;  // of each arena, and the end
  std::int64_t total_ = 0;
  int gradient_arenas_ = 0;
  pugi::xml_document document_;
  pugi::xml_node svg_;
};

}  // namespace

std::string draw(const Plan& plan, const LayerBytes& bytes, int microbatches) {
  check_bytes(plan, bytes);
  const auto& counts = plan.covered_counts;
  if (std::find(counts.begin(), counts.end(), microbatches) == counts.end()) {
    throw Error(Error::kInput,
                {"T02", "--microbatches", fmt::to_string(microbatches),
                 fmt::format("one of {}", fmt::join(counts, ", ")), "choose a covered count"});
  }
  if (2 * std::int64_t{microbatches} * plan.chunks() > kMostDrawnEvents) {
    throw Error(Error::kInput,
                {"T02", "--microbatches", fmt::to_string(microbatches),
                 fmt::format("at most {} events", kMostDrawnEvents), "choose a smaller count"});
  }
  if (plan.layers() == 0)
    throw Error(Error::kInput, {"T02", "plan", "no layers", "frames to draw", "draw another rank"});
  return Drawing(plan, bytes, microbatches).run();
}

}  // namespace slotgraph
