// Frame sizes and first-free plans in JSON.
#ifndef CORE_PLAN_JSON_PACKING_JSON_H_
#define CORE_PLAN_JSON_PACKING_JSON_H_

#include <nlohmann/json.hpp>

#include "core/json_reader.h"
#include "core/plan/packing/first_free.h"

namespace slotgraph {

// A list for each chunk with the bytes of each layer. Whether it fits a plan is not checked.
LayerBytes layer_bytes_from_json(const JsonReader& reader);

nlohmann::json to_json(const FirstFreePlan& plan);
// The plan is not checked.
FirstFreePlan first_free_from_json(const JsonReader& reader);

// A file, with schema and digest. Throws Error J03-J05, H01, H03 as plan_from_document.
nlohmann::json document_of(const FirstFreePlan& plan);
FirstFreePlan first_free_from_document(const JsonReader& reader);

// Whether the document is a first-free plan, as a file or bare; and that plan.
bool is_first_free(const JsonReader& reader);
FirstFreePlan first_free_from_any(const JsonReader& reader);

}  // namespace slotgraph

#endif  // CORE_PLAN_JSON_PACKING_JSON_H_
