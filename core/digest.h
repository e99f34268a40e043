// SHA-256, the project's one digest.
#ifndef CORE_DIGEST_H_
#define CORE_DIGEST_H_

#include <string>
#include <string_view>

namespace slotgraph {

// 64 hexadecimal digits. Throws std::runtime_error if the library has no SHA-256.
std::string sha256(std::string_view bytes);

}  // namespace slotgraph

#endif  // CORE_DIGEST_H_
