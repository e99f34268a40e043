// Frame sizes and first-free plans in JSON.
#ifndef CORE_PLAN_JSON_PACKING_JSON_H_
#define CORE_PLAN_JSON_PACKING_JSON_H_

#include <nlohmann/json.hpp>

#include "core/plan/json/reader.h"
#include "core/plan/packing/first_free.h"

namespace slotgraph {

// A list for each chunk with the bytes of each layer. Whether it fits a plan is not checked.
LayerBytes layer_bytes_from_json(const JsonReader& reader);

nlohmann::json to_json(const FirstFreePlan& plan);
// The plan is not checked.
FirstFreePlan first_free_from_json(const JsonReader& reader);

}  // namespace slotgraph

#endif  // CORE_PLAN_JSON_PACKING_JSON_H_
