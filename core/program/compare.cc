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

// Which of two values a use reads in both programs; -1: they differ.
int Common(const RecordedProgram& expected, int a, const RecordedProgram& found, int b) {
  if (a == b || SameTensor(expected, a, b)) return b;
  return SameTensor(found, a, b) ? a : -1;
}

std::string DifferenceOfUses(const RecordedProgram& expected, const TensorUse& a, const RecordedProgram& found,
                             const TensorUse& b, bool sizes) {
  if (a.value < 0 && b.value < 0) return "";
  const int value = sizes || a.value < 0 || b.value < 0 ? (a.value == b.value ? a.value : -1)
                                                        : Common(expected, a.value, found, b.value);
  if (value < 0) return absl::StrCat(NameOf(found, b.value), ", not ", NameOf(expected, a.value));
  // Values are numbered as they come: the same program has the same numbers.
  if (sizes && a.version == b.version) return "";
  const auto writer = [&](const RecordedProgram& program, TensorUse use) {
    use.value = value;
    const int call = Producer(program, use);
    return call == program.values[value].call ? -1 : call;
  };
  const int x = writer(expected, a);
  const int y = writer(found, b);
  if (x == y) return "";
  const auto state = [](const RecordedProgram& program, int call) {
    return call < 0 ? std::string("as it was made")
                    : absl::StrCat("as ", FullName(program.calls[call].op.schema()), " left it");
  };
  return absl::StrCat(NameOf(found, value), " ", state(found, y), ", not ", state(expected, x),
                      sizes ? "" : ": what is written is a view of it at some sizes and a copy at others");
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
    const std::string difference = DifferenceOfUses(expected, a.uses[k], found, b.uses[k], sizes);
    if (difference.empty()) continue;
    return absl::StrCat("the argument ", a.op.schema().arguments()[a.uses[k].argument].name(), " is ", difference);
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

bool SameElements(const Geometry& geometry, c10::IntArrayRef sizes, c10::IntArrayRef strides, int64_t offset) {
  if (geometry.offset != offset || c10::IntArrayRef(geometry.sizes) != sizes) return false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] != 1 && geometry.strides[d] != strides[d]) return false;
  }
  return true;
}

bool SameTensor(const RecordedProgram& program, int a, int b) {
  if (a == b) return true;
  const auto count = static_cast<int>(program.values.size());
  if (a < 0 || b < 0 || a >= count || b >= count) return false;
  const RecordedValue& x = program.values[a];
  const RecordedValue& y = program.values[b];
  return x.storage == y.storage && x.dtype == y.dtype && x.conjugated == y.conjugated && x.negated == y.negated &&
         SameElements(x.geometry, y.geometry.sizes, y.geometry.strides, y.geometry.offset);
}

int StorageLike(const RecordedProgram& expected, int storage, const RecordedProgram& found) {
  const int value = expected.storages[storage].value;
  return value < 0 || value >= static_cast<int>(found.values.size()) ? -1 : found.values[value].storage;
}

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
