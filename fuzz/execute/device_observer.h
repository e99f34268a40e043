// Keeping and comparing tensors where they are.
#ifndef FUZZ_EXECUTE_DEVICE_OBSERVER_H_
#define FUZZ_EXECUTE_DEVICE_OBSERVER_H_

#include <memory>

#include "fuzz/execute/observer.h"

namespace slotgraph::fuzz {

std::unique_ptr<Truth> make_device_truth();

}  // namespace slotgraph::fuzz

#endif  // FUZZ_EXECUTE_DEVICE_OBSERVER_H_
