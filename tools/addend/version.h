#ifndef ADDEND_TOOLS_ADDEND_VERSION_H_
#define ADDEND_TOOLS_ADDEND_VERSION_H_

namespace addend::cli {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace addend::cli

#endif  // ADDEND_TOOLS_ADDEND_VERSION_H_
