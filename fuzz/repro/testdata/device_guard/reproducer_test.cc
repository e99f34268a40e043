// Fails as long as the failure of this folder is there.
#include <gtest/gtest.h>

#include "core/json_reader.h"
#include "fuzz/repro/experiment.h"

namespace slotgraph::fuzz {
namespace {

constexpr const char* kExperiment = R"json({
 "case": {
  "addresses": "ascending",
  "dtype": "fp32",
  "hidden": 8,
  "layers": [
   {
    "aliased_inputs": false,
    "block": "mlp",
    "extra_gradients": true,
    "input_gradient": true,
    "trainable": "all"
   },
   {
    "aliased_inputs": false,
    "block": "two_inputs",
    "extra_gradients": true,
    "input_gradient": true,
    "trainable": "all"
   },
   {
    "aliased_inputs": false,
    "block": "dropout",
    "extra_gradients": true,
    "input_gradient": true,
    "trainable": "all"
   },
   {
    "aliased_inputs": false,
    "block": "running_mean",
    "extra_gradients": true,
    "input_gradient": true,
    "trainable": "all"
   }
  ],
  "modes": [
   "placement"
  ],
  "order_seed": 7,
  "partial_backward": false,
  "plan": {
   "base_order": [
    1,
    1,
    2,
    2,
    1,
    -2,
    1,
    -2,
    2,
    -1,
    2,
    -1,
    -2,
    -2,
    -1,
    -1
   ],
   "covered_microbatch_counts": [
    8
   ],
   "cp_sizes": [
    2,
    1
   ],
   "layers_per_chunk": [
    2,
    2
   ],
   "microbatch_group_size": 2,
   "name": "reference",
   "pipeline_rank": 0,
   "pipeline_size": 2,
   "ring_length": 4,
   "slots": [
    [
     0,
     0,
     0,
     0,
     0,
     0,
     0
    ],
    [
     1,
     0,
     0,
     0,
     1,
     1,
     0
    ],
    [
     2,
     1,
     1,
     0,
     0,
     0,
     1
    ],
    [
     3,
     1,
     1,
     0,
     1,
     1,
     1
    ],
    [
     4,
     2,
     2,
     0,
     0,
     0,
     0
    ],
    [
     5,
     2,
     2,
     0,
     1,
     1,
     0
    ],
    [
     6,
     3,
     3,
     0,
     0,
     0,
     1
    ],
    [
     7,
     3,
     3,
     0,
     1,
     1,
     1
    ],
    [
     8,
     0,
     0,
     1,
     0,
     2,
     0
    ],
    [
     9,
     0,
     0,
     1,
     1,
     3,
     0
    ],
    [
     10,
     1,
     1,
     1,
     0,
     2,
     1
    ],
    [
     11,
     1,
     1,
     1,
     1,
     3,
     1
    ],
    [
     8,
     2,
     2,
     1,
     0,
     2,
     0
    ],
    [
     9,
     2,
     2,
     1,
     1,
     3,
     0
    ],
    [
     10,
     3,
     3,
     1,
     0,
     2,
     1
    ],
    [
     11,
     3,
     3,
     1,
     1,
     3,
     1
    ],
    [
     0,
     0,
     4,
     0,
     0,
     4,
     0
    ],
    [
     1,
     0,
     4,
     0,
     1,
     5,
     0
    ],
    [
     2,
     1,
     5,
     0,
     0,
     4,
     1
    ],
    [
     3,
     1,
     5,
     0,
     1,
     5,
     1
    ],
    [
     4,
     2,
     6,
     0,
     0,
     4,
     0
    ],
    [
     5,
     2,
     6,
     0,
     1,
     5,
     0
    ],
    [
     6,
     3,
     7,
     0,
     0,
     4,
     1
    ],
    [
     7,
     3,
     7,
     0,
     1,
     5,
     1
    ],
    [
     8,
     0,
     4,
     1,
     0,
     6,
     0
    ],
    [
     9,
     0,
     4,
     1,
     1,
     7,
     0
    ],
    [
     10,
     1,
     5,
     1,
     0,
     6,
     1
    ],
    [
     11,
     1,
     5,
     1,
     1,
     7,
     1
    ],
    [
     8,
     2,
     6,
     1,
     0,
     6,
     0
    ],
    [
     9,
     2,
     6,
     1,
     1,
     7,
     0
    ],
    [
     10,
     3,
     7,
     1,
     0,
     6,
     1
    ],
    [
     11,
     3,
     7,
     1,
     1,
     7,
     1
    ]
   ],
   "user_grad_arena_of_chunk_slot": [
    [
     0,
     1,
     0,
     1
    ],
    [
     0,
     1,
     0,
     1
    ]
   ],
   "virtual_stages": 2
  },
  "poison": 255,
  "schedule": {
   "source": "reference",
   "variants": [
    0,
    1,
    1,
    0,
    0,
    1,
    1,
    0
   ]
  },
  "schema": 3,
  "seed": 1,
  "shadow": false,
  "steps": 1,
  "tokens": [
   4,
   8
  ]
 },
 "injection": {
  "fault": "once",
  "nth": 3,
  "phase": "teardown",
  "point": "cudaGetDevice",
  "second": 0
 },
 "mode": "placement"
})json";

TEST(Reproducer, Holds) {
  const nlohmann::json json = parse_json(kExperiment, "kExperiment");
  const Observation found = observe(experiment_from_json(JsonReader(json, "kExperiment")));
  EXPECT_EQ(found.signature, "") << nlohmann::json(found.findings).dump(1);
}

}  // namespace
}  // namespace slotgraph::fuzz
