#include "core/onnx/operators.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/onnx/families.h"
#include "core/onnx/node_name.h"

namespace addend::onnx {

std::optional<int64_t> NewestOf(absl::string_view domain) {
  if (domain.empty()) return kNewestOpset;
  if (domain == kMachineLearningDomain) return kNewestMachineLearningOpset;
  if (domain == kMicrosoftDomain) return kNewestMicrosoftOpset;
  if (domain == kPreviewDomain) return kNewestPreviewOpset;
  return std::nullopt;
}

std::string OperatorRow::InputCountText() const {
  if (most_inputs_ == std::numeric_limits<size_t>::max()) return absl::StrCat(least_inputs_, " or more");
  if (least_inputs_ == most_inputs_) return absl::StrCat(least_inputs_);
  return absl::StrCat(least_inputs_, " to ", most_inputs_);
}

void OperatorRow::Check(const NodeProto& node) const {
  if (node.inputs.size() < least_inputs_ || node.inputs.size() > most_inputs_) {
    throw InvalidArgument(
        absl::StrCat(NameOf(node), " has ", node.inputs.size(), " inputs; the operator takes ", InputCountText()));
  }
  for (const AttributeProto& attribute : node.attributes) {
    if (std::find(attributes_.begin(), attributes_.end(), attribute.name) != attributes_.end()) continue;
    throw Unimplemented(absl::StrCat(NameOf(node), " has the attribute ", Quoted(std::string(attribute.name)),
                                     ", which is not supported; write the model without it"));
  }
}

OperatorRow& OperatorTable::AddTo(const char* domain, const char* name, int64_t since, OperatorFunction function) {
  std::vector<OperatorRow>& rows = rows_[{domain, name}];
  if (std::any_of(rows.begin(), rows.end(), [&](const OperatorRow& row) { return row.since() == since; })) {
    throw Internal(absl::StrCat("the table has two lines of ", name, " from version ", since, " on"));
  }
  return *rows.insert(
      std::find_if(rows.begin(), rows.end(), [&](const OperatorRow& row) { return row.since() > since; }),
      OperatorRow(since, function));
}

void OperatorTable::KeepIntegers(std::initializer_list<const char*> names, size_t results) {
  for (const char* name : names) {
    for (OperatorRow& row : rows_.at({"", name})) row.KeepsIntegers(results);
  }
}

void OperatorTable::ReadUnsigned(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    for (OperatorRow& row : rows_.at({"", name})) row.ReadsUnsigned();
  }
}

const OperatorRow& OperatorTable::Find(const Operator& op) const {
  const std::string domain(op.domain);
  const auto refused = refused_.find({domain, std::string(op.node->op_type)});
  if (refused != refused_.end()) throw Unimplemented(absl::StrCat(NameOf(*op.node), " is refused: ", refused->second));
  const std::optional<int64_t> newest = NewestOf(op.domain);
  if (!newest) {
    throw Unimplemented(absl::StrCat(NameOf(*op.node), " is of an operator of the domain ", Quoted(domain),
                                     ", of which none is known; write the model with operators of ai.onnx alone, or ",
                                     "give the operator as a function of the model"));
  }
  const auto found = rows_.find({domain, std::string(op.node->op_type)});
  if (found == rows_.end()) {
    throw Unimplemented(absl::StrCat(
        NameOf(*op.node), " is of an operator that is not supported; ",
        domain.empty() ? "write the model without it" : "write the model with operators of ai.onnx alone"));
  }
  if (op.version > *newest) {
    throw Unimplemented(absl::StrCat(NameOf(*op.node), " is of version ", op.version,
                                     " of its operator set; the newest that this version of Addend knows is ", *newest,
                                     ": update Addend, or export the model for that one"));
  }
  // The last line that begins at the node's version or before it.
  const std::vector<OperatorRow>& rows = found->second;
  auto row = std::find_if(rows.rbegin(), rows.rend(), [&](const OperatorRow& r) { return r.since() <= op.version; });
  if (row == rows.rend() || op.version > row->until()) {
    throw Unimplemented(
        absl::StrCat(NameOf(*op.node), " is of version ", op.version,
                     " of its operator set, in which the operator is not supported; it is from version ",
                     rows.front().since(), " on: convert the model with onnx.version_converter"));
  }
  return *row;
}

bool OperatorTable::Has(const Operator& op) const {
  return rows_.count({std::string(op.domain), std::string(op.node->op_type)}) != 0;
}

const OperatorTable& Operators() {
  static const OperatorTable& all = *[] {
    auto* table = new OperatorTable();
    RegisterActivations(*table);
    RegisterArithmetic(*table);
    RegisterAttention(*table);
    RegisterComparisons(*table);
    RegisterConstants(*table);
    RegisterControlFlow(*table);
    RegisterConvolutions(*table);
    RegisterFeatures(*table);
    RegisterIndexing(*table);
    RegisterLinearModels(*table);
    RegisterLosses(*table);
    RegisterMatrices(*table);
    RegisterMicrosoft(*table);
    RegisterMicrosoftQuantized(*table);
    RegisterNormalizations(*table);
    RegisterPools(*table);
    RegisterQuantized(*table);
    RegisterRandom(*table);
    RegisterRecurrent(*table);
    RegisterReductions(*table);
    RegisterRefused(*table);
    RegisterResampling(*table);
    RegisterSequences(*table);
    RegisterShapes(*table);
    RegisterSignal(*table);
    RegisterTrees(*table);
    RegisterVision(*table);
    return table;
  }();
  return all;
}

}  // namespace addend::onnx
