#include "core/program/compare.h"

#include <algorithm>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace addend {
namespace {

std::string Text(const c10::IValue& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

std::string NameOf(const RecordedProgram& program, int value) {
  return value < 0 ? "nothing" : program.values[value].name;
}

std::string DifferenceOf(const RecordedProgram& expected, const RecordedProgram& found, size_t c, bool sizes) {
  const RecordedCall& a = expected.calls[c];
  const RecordedCall& b = found.calls[c];
  if (FullName(a.op.schema()) != FullName(b.op.schema())) {
    return absl::StrCat("the operator is ", FullName(b.op.schema()), ", not ", FullName(a.op.schema()));
  }
  for (size_t k = 0; k < a.arguments.size(); ++k) {
    if (SamePlain(a.arguments[k], b.arguments[k])) continue;
    // Other sizes come with other numbers.
    if (!sizes && a.arguments[k].tagKind() == b.arguments[k].tagKind() &&
        (a.arguments[k].isInt() || a.arguments[k].isIntList())) {
      continue;
    }
    return absl::StrCat("the argument ", a.op.schema().arguments()[k].name(), " is ", Text(b.arguments[k]), ", not ",
                        Text(a.arguments[k]));
  }
  if (a.uses.size() != b.uses.size()) {
    return absl::StrCat("the operator reads ", b.uses.size(), " tensors, not ", a.uses.size());
  }
  for (size_t k = 0; k < a.uses.size(); ++k) {
    // Values are numbered as they come: the same program has the same numbers.
    if (a.uses[k].value == b.uses[k].value && a.uses[k].version == b.uses[k].version) continue;
    return absl::StrCat("the argument ", a.op.schema().arguments()[a.uses[k].argument].name(), " is ",
                        NameOf(found, b.uses[k].value), ", not ", NameOf(expected, a.uses[k].value));
  }
  if (a.results.size() != b.results.size()) {
    return absl::StrCat("the operator gives ", b.results.size(), " tensors, not ", a.results.size());
  }
  for (size_t k = 0; k < a.results.size(); ++k) {
    if ((a.results[k] < 0) != (b.results[k] < 0)) return "the operator gives an undefined tensor only once";
    if (a.results[k] < 0) continue;
    const RecordedValue& x = expected.values[a.results[k]];
    const RecordedValue& y = found.values[b.results[k]];
    const bool same = x.dtype == y.dtype && (sizes ? x.geometry.sizes == y.geometry.sizes
                                                   : x.geometry.sizes.size() == y.geometry.sizes.size());
    if (!same) return absl::StrCat("the operator gives ", DescribeValue(y), ", not ", DescribeValue(x));
  }
  return "";
}

}  // namespace

std::optional<ProgramDifference> FirstDifference(const RecordedProgram& expected, const RecordedProgram& found,
                                                 bool sizes) {
  const size_t common = std::min(expected.calls.size(), found.calls.size());
  for (size_t c = 0; c < common; ++c) {
    std::string text = DifferenceOf(expected, found, c, sizes);
    if (!text.empty()) return ProgramDifference{static_cast<int>(c), std::move(text)};
  }
  if (expected.calls.size() != found.calls.size()) {
    const bool longer = found.calls.size() > common;
    const RecordedCall& more = longer ? found.calls[common] : expected.calls[common];
    return ProgramDifference{
        static_cast<int>(common) - (longer ? 1 : 0),
        absl::StrCat(longer ? "then comes " : "is no longer called: ", FullName(more.op.schema()))};
  }
  const std::string output = Difference(expected.output, found.output);
  if (!output.empty()) return ProgramDifference{-1, absl::StrCat("the output", output)};
  return std::nullopt;
}

}  // namespace addend
