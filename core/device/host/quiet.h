// Silences warnings of libtorch on this thread.
#ifndef CORE_DEVICE_HOST_QUIET_H_
#define CORE_DEVICE_HOST_QUIET_H_

#include <c10/util/Exception.h>

namespace slotgraph::device::host {

// For kernels that run as part of the device: what they warn of, such as an output that a kernel
// resizes to and fro, is nothing that the caller did.
class QuietScope {
 private:
  struct Handler final : c10::WarningHandler {
    void process(const c10::Warning&) override {}
  };
  Handler handler_;
  c10::WarningUtils::WarningHandlerGuard guard_{&handler_};
};

}  // namespace slotgraph::device::host

#endif  // CORE_DEVICE_HOST_QUIET_H_
