// How the LibTorch of a process is told from another; apart from version.cc for its test.
#ifndef ADDEND_C_API_VERSION_H_
#define ADDEND_C_API_VERSION_H_

#include <set>
#include <string>

namespace addend::c_api {

// The version that LibTorch's description of its build names; empty where it does not.
std::string VersionIn(const std::string& configuration);
// What is wrong with a process that has loaded LibTorch `loaded` from `files`; empty where nothing is.
std::string LibTorchProblem(const std::string& built, const std::string& loaded, const std::set<std::string>& files);

}  // namespace addend::c_api

#endif  // ADDEND_C_API_VERSION_H_
