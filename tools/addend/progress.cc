#include "tools/addend/progress.h"

#include <unistd.h>

#include <cinttypes>
#include <cstdio>

namespace addend::cli {
namespace {

constexpr auto kPatience = std::chrono::seconds(1);
constexpr auto kBetweenLines = std::chrono::milliseconds(100);

// Describes a stage of the core to a user.
const char* Describe(const std::string& stage) {
  if (stage == "trace") return "running the model";
  if (stage == "linearize") return "comparing input and baseline";
  if (stage == "sweep") return "following the parts";
  return stage.c_str();
}

}  // namespace

Progress::Progress() : terminal_(::isatty(STDERR_FILENO) == 1), start_(Clock::now()), last_(start_) {}

void Progress::Show(const std::string& stage, int64_t done, int64_t total) {
  if (!terminal_) return;
  const auto now = Clock::now();
  if (now - start_ < kPatience || now - last_ < kBetweenLines) return;
  last_ = now;
  shown_ = true;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  // Back to the line's start, the text, and whatever a longer text left behind it erased.
  if (total > 1) {
    std::fprintf(stderr, "\r%s: %" PRId64 " of %" PRId64 " steps, %.0f s\033[K", Describe(stage), done, total, seconds);
  } else {
    std::fprintf(stderr, "\r%s, %.0f s\033[K", Describe(stage), seconds);
  }
  std::fflush(stderr);
}

void Progress::Clear() {
  if (!shown_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace addend::cli
