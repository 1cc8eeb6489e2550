// How long work tells how far it is.
#ifndef ADDEND_CORE_BASE_PROGRESS_H_
#define ADDEND_CORE_BASE_PROGRESS_H_

#include <cstdint>
#include <functional>
#include <string>

namespace addend {

// Called with the number of steps that are done and that of all; 0 of all: not known yet. May be empty.
using Progress = std::function<void(int64_t done, int64_t total)>;

// Progress of work in stages, "trace", "linearize" and "sweep". May be empty.
using StageProgress = std::function<void(const std::string& stage, int64_t done, int64_t total)>;

}  // namespace addend

#endif  // ADDEND_CORE_BASE_PROGRESS_H_
