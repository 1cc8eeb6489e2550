#include "core/intercept/python_trace.h"

#include <cstddef>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace addend {

std::vector<SourceFrame> FramesOfPythonTrace(const std::string& trace) {
  std::vector<SourceFrame> frames;
  bool text_next = false;
  for (const auto whole : absl::StrSplit(trace, '\n')) {
    std::string line(absl::StripAsciiWhitespace(whole));
    if (absl::StartsWith(line, "File \"")) {
      const size_t quote = line.find("\", line ");
      if (quote == std::string::npos) continue;
      SourceFrame frame;
      frame.file = line.substr(6, quote - 6);
      const std::string rest = line.substr(quote + 8);
      const size_t comma = rest.find(',');
      if (!absl::SimpleAtoi(rest.substr(0, comma), &frame.line)) frame.line = -1;
      const size_t in = rest.find(", in ");
      if (in != std::string::npos) frame.function = rest.substr(in + 5);
      frames.push_back(std::move(frame));
      text_next = true;
    } else if (text_next && !line.empty()) {
      frames.back().text = std::move(line);
      text_next = false;
    }
  }
  return frames;
}

}  // namespace addend
