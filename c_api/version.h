// How the LibTorch of a process is told from another; apart from version.cc for its test.
#ifndef ADDEND_C_API_VERSION_H_
#define ADDEND_C_API_VERSION_H_

#include <set>
#include <string>

namespace addend::c_api {

// Problem of a process that has loaded LibTorch `loaded` from `files`; empty if there is none. other_is_allowed:
// the user tries a LibTorch that this library was not built for; results have a note then.
std::string LibTorchProblem(const std::string& built, const std::string& loaded, const std::set<std::string>& files,
                            bool other_is_allowed);

}  // namespace addend::c_api

#endif  // ADDEND_C_API_VERSION_H_
