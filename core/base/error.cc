#include "core/base/error.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/text.h"

namespace addend {
namespace {

std::string Compose(const std::string& message, const Position& position, const std::string& hint) {
  const std::string where = position.Describe();
  return absl::StrCat(message, where.empty() ? "" : absl::StrCat(" (", where, ")"), hint.empty() ? "" : "; ", hint);
}

// Makes a message what every language and every terminal can show: not as long as what it quotes, and without a zero,
// at which it would end. It is cut again once it is escaped, which may make it four times as long. Line breaks stay:
// behind the first one LibTorch tells what no door shows.
std::string Fit(const std::string& message) {
  std::vector<std::string> lines = absl::StrSplit(Shortened(message, kMostMessage), '\n');
  for (std::string& line : lines) line = OneLine(line);
  return Shortened(absl::StrJoin(lines, "\n"), kMostMessage);
}

// The path as a reader of an error wants it: the file, not the folders of the machine that trained the model.
std::string BaseName(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

}  // namespace

std::string Position::Describe() const {
  std::vector<std::string> parts;
  if (op_index >= 0) parts.push_back(absl::StrCat("op #", op_index));
  if (!module_path.empty()) parts.push_back(module_path);
  if (!file.empty()) {
    parts.push_back(line > 0 ? absl::StrCat(BaseName(file), ":", line) : BaseName(file));
  } else if (op_index >= 0 && line < 0 && !function.empty()) {
    parts.push_back(function);  // a node of a graph; messages on a node that is no call name it themselves
  } else if (!parameters.empty()) {
    parts.push_back(absl::StrCat("uses ", absl::StrJoin(parameters, ", ")));
  }
  return absl::StrJoin(parts, ", ");
}

Error::Error(absl::StatusCode code, const std::string& message) : std::runtime_error(Fit(message)), code_(code) {}

Error::Error(absl::StatusCode code, const std::string& message, Position position, const std::string& hint)
    : std::runtime_error(Fit(Compose(message, position, hint))), code_(code), position_(std::move(position)) {}

Error InvalidArgument(const std::string& message) { return Error(absl::StatusCode::kInvalidArgument, message); }
Error NotFound(const std::string& message) { return Error(absl::StatusCode::kNotFound, message); }
Error Unimplemented(const std::string& message) { return Error(absl::StatusCode::kUnimplemented, message); }
Error FailedPrecondition(const std::string& message) { return Error(absl::StatusCode::kFailedPrecondition, message); }
Error Internal(const std::string& message) { return Error(absl::StatusCode::kInternal, message); }

}  // namespace addend
