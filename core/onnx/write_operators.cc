// Writes docs/onnx_operators.md: the table of operators, as models are read by it.
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/onnx/operators.h"

namespace addend::onnx {
namespace {

constexpr char kHead[] = R"(# ONNX operators

Addend [runs ONNX models](from_onnx.md) node by node. This page is made from the table by which it reads them, so that it says
what a model may hold. Whatever is not here is refused when the model is loaded, with the operator and the name of the node.

- **Versions** are those of the operator set. A line holds for them; where an operator changed, it has several lines.
- **Attributes** are those that are read, or that change nothing. A node with another one is refused.
- Sizes, types and settings of which an operator takes only some are refused by the node that has others, with the reason.
)";

constexpr char kRenew[] =
    "\nTo renew this page: `bazel build //core/onnx:operators_page`, then copy `bazel-bin/core/onnx/onnx_operators.md` "
    "over it.\n";

std::string DomainText(const std::string& domain) { return domain.empty() ? "ai.onnx" : domain; }

// "6", "1 to 5", or "6 on".
std::string VersionsText(const OperatorRow& row, const OperatorRow* next) {
  int64_t last = row.until();
  if (next != nullptr && next->since() - 1 < last) last = next->since() - 1;
  if (last == std::numeric_limits<int64_t>::max()) return absl::StrCat(row.since(), " on");
  return last == row.since() ? absl::StrCat(last) : absl::StrCat(row.since(), " to ", last);
}

std::string AttributesText(const std::vector<std::string>& names) {
  return absl::StrJoin(names, ", ",
                       [](std::string* out, const std::string& name) { absl::StrAppend(out, "`", name, "`"); });
}

void WritePage(std::ostream& out) {
  out << kHead;
  std::string domain = "none";
  for (const auto& [name, rows] : Operators().rows()) {
    if (name.first != domain) {
      domain = name.first;
      out << "\n## " << DomainText(domain) << "\n\nUp to version " << NewestOf(domain).value() << ".\n\n";
      out << "| operator | versions | inputs | attributes |\n|---|---|---|---|\n";
    }
    for (size_t k = 0; k < rows.size(); ++k) {
      const OperatorRow& row = rows[k];
      out << "| `" << name.second << "` | " << VersionsText(row, k + 1 < rows.size() ? &rows[k + 1] : nullptr) << " | "
          << row.InputCountText() << " | " << AttributesText(row.attributes()) << " |\n";
    }
  }
  out << "\n## Noted\n\nEvery model that has one of these gets a note.\n\n| operator | note |\n|---|---|\n";
  for (const auto& [name, rows] : Operators().rows()) {
    for (const OperatorRow& row : rows) {
      if (!row.note().empty()) out << "| `" << name.second << "` | " << row.note() << " |\n";
    }
  }
  out << "\n## Refused\n\n| domain | operator | why |\n|---|---|---|\n";
  for (const auto& [name, why] : Operators().refused()) {
    out << "| " << DomainText(name.first) << " | `" << name.second << "` | " << why << " |\n";
  }
  out << kRenew;
}

}  // namespace
}  // namespace addend::onnx

int main() {
  addend::onnx::WritePage(std::cout);
  return std::cout ? 0 : 1;
}
