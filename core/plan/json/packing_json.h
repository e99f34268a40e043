// Frame sizes in JSON.
#ifndef CORE_PLAN_JSON_PACKING_JSON_H_
#define CORE_PLAN_JSON_PACKING_JSON_H_

#include "core/json_reader.h"
#include "core/plan/packing/packing.h"

namespace slotgraph {

// A list for each chunk with the bytes of each layer. Whether it fits a plan is not checked.
LayerBytes layer_bytes_from_json(const JsonReader& reader);

}  // namespace slotgraph

#endif  // CORE_PLAN_JSON_PACKING_JSON_H_
