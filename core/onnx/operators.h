// The table of operators: which function runs an operator of a domain and version, and what it accepts.
//
// An operator is a line in the Register function of its family's file, and a function there. A new family also stands
// in families.h and operators.cc.
#ifndef ADDEND_CORE_ONNX_OPERATORS_H_
#define ADDEND_CORE_ONNX_OPERATORS_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/onnx/datum.h"
#include "core/onnx/graph.h"

namespace addend::onnx {

class Context;

using OperatorFunction = Results (*)(const Context& context);
// Makes tensors of a node's attributes; see OperatorRow::PreparedBy(). The node's inputs are not there yet.
using PrepareFunction = std::vector<at::Tensor> (*)(const Context& context);

// Makes a tensor of a node's attributes and constants; see OperatorRow::MakesOnce().
using MakeOnceFunction = at::Tensor (*)(const Context& context);

// Newest versions of the operator sets that the table knows.
inline constexpr int64_t kNewestOpset = 28;
inline constexpr int64_t kNewestMachineLearningOpset = 5;
inline constexpr int64_t kNewestMicrosoftOpset = 1;
inline constexpr int64_t kNewestPreviewOpset = 1;

inline constexpr char kMachineLearningDomain[] = "ai.onnx.ml";
inline constexpr char kMicrosoftDomain[] = "com.microsoft";
inline constexpr char kPreviewDomain[] = "ai.onnx.preview";

// The newest version of a domain's operator set that the table knows; nothing for a domain that it does not know.
std::optional<int64_t> NewestOf(absl::string_view domain);

// Condition under which results are known where all inputs are; see Note [Known values].
enum class KnownIf {
  kInputs,          // nothing more: they have as many elements as the inputs say by their own sizes
  kSizesConstant,   // the inputs behind the first, which say how many elements there are, are constants
  kInputsConstant,  // all inputs are constants
  kNever,           // it draws numbers, or decides itself
};

// More than the results of any operator.
inline constexpr size_t kAllResults = std::numeric_limits<size_t>::max();

// A line of the table. It holds from its version up to the next line of its name.
class OperatorRow {
 public:
  OperatorRow(int64_t since, OperatorFunction function) : since_(since), function_(function) {}

  // How many inputs a node has. Without: one.
  OperatorRow& Inputs(size_t least, size_t most) {
    least_inputs_ = least;
    most_inputs_ = most;
    return *this;
  }
  OperatorRow& Inputs(size_t count) { return Inputs(count, count); }
  OperatorRow& InputsFrom(size_t least) { return Inputs(least, std::numeric_limits<size_t>::max()); }
  // Names of the attributes that the function reads, or that change nothing. Others are refused.
  OperatorRow& Attributes(std::vector<std::string> names) {
    attributes_ = std::move(names);
    return *this;
  }
  OperatorRow& Known(KnownIf condition) {
    known_ = condition;
    return *this;
  }
  // The last version in which the operator is there.
  OperatorRow& Until(int64_t version) {
    until_ = version;
    return *this;
  }
  // The function reads integers that a floating-point tensor holds; see Note [Integers as floats].
  OperatorRow& ReadsIntegers() {
    reads_integers_ = true;
    return *this;
  }
  // The first `results` results hold them too, as the inputs do; others are places of elements.
  OperatorRow& KeepsIntegers(size_t results = kAllResults) {
    kept_results_ = results;
    return ReadsIntegers();
  }
  // The function reads integers of a type without sign that a wider type holds, and of no other such ones; see Note
  // [Integers in a wider type].
  OperatorRow& ReadsUnsigned() {
    reads_unsigned_ = true;
    return *this;
  }
  // Tensors that a node makes of its attributes once, when the model is loaded: Context::Prepared(). Refusals belong
  // there too. Attributes that only the preparation reads, `read_once`, are released. Implies KnownIf::kNever.
  OperatorRow& PreparedBy(PrepareFunction function, std::vector<std::string> read_once = {}) {
    prepare_ = function;
    read_once_ = std::move(read_once);
    known_ = KnownIf::kNever;
    return *this;
  }
  // A tensor that a node makes of its attributes and of its inputs behind the first, where these are constants of the
  // file. It is made once for each model, in its type and on its device: Context::MadeOnce().
  OperatorRow& MakesOnce(MakeOnceFunction function) {
    make_once_ = function;
    return *this;
  }
  // A note on every model that has the operator; the names of its nodes are added: "numbers are drawn".
  OperatorRow& Note(std::string note) {
    note_ = std::move(note);
    return *this;
  }

  int64_t since() const { return since_; }
  int64_t until() const { return until_; }
  OperatorFunction function() const { return function_; }
  PrepareFunction prepare() const { return prepare_; }
  const std::vector<std::string>& read_once() const { return read_once_; }
  MakeOnceFunction make_once() const { return make_once_; }
  KnownIf known() const { return known_; }
  bool reads_integers() const { return reads_integers_; }
  bool reads_unsigned() const { return reads_unsigned_; }
  // How many of its results hold integers as the inputs do.
  size_t kept_results() const { return kept_results_; }
  const std::string& note() const { return note_; }
  const std::vector<std::string>& attributes() const { return attributes_; }
  // "2", "1 to 3", "1 or more".
  std::string InputCountText() const;

  // Throws InvalidArgument for a node with another number of inputs, Unimplemented for one with an attribute that the
  // function does not read.
  void Check(const NodeProto& node) const;

 private:
  int64_t since_;
  int64_t until_ = std::numeric_limits<int64_t>::max();
  OperatorFunction function_;
  size_t least_inputs_ = 1;
  size_t most_inputs_ = 1;
  std::vector<std::string> attributes_;
  KnownIf known_ = KnownIf::kInputs;
  bool reads_integers_ = false;
  bool reads_unsigned_ = false;
  size_t kept_results_ = 0;
  PrepareFunction prepare_ = nullptr;
  std::vector<std::string> read_once_;
  MakeOnceFunction make_once_ = nullptr;
  std::string note_;
};

class OperatorTable {
 public:
  using Name = std::pair<std::string, std::string>;  // domain and name

  // Adds a line, for operators of the default domain. Throws Internal for a second line of the same version.
  OperatorRow& Add(const char* name, int64_t since, OperatorFunction function) {
    return AddTo("", name, since, function);
  }
  OperatorRow& AddTo(const char* domain, const char* name, int64_t since, OperatorFunction function);
  // Adds an operator of ONNX that has no line, and why: for whoever has a model with it.
  void Refuse(const char* domain, const char* name, const char* why) { refused_[{domain, name}] = why; }

  // Says of operators of the default domain, in all versions, that their first `results` results are elements of their
  // inputs; others are places of such.
  void KeepIntegers(std::initializer_list<const char*> names, size_t results = kAllResults);
  // Says of operators of the default domain, in all versions, that they read integers in a wider type.
  void ReadUnsigned(std::initializer_list<const char*> names);

  // Finds the line of a node's operator. Throws Unimplemented, with the node, where there is none.
  const OperatorRow& Find(const Operator& op) const;
  // Whether the table has the node's operator, in any version.
  bool Has(const Operator& op) const;

  const std::map<Name, std::vector<OperatorRow>>& rows() const { return rows_; }
  const std::map<Name, std::string>& refused() const { return refused_; }

 private:
  std::map<Name, std::vector<OperatorRow>> rows_;  // by version
  std::map<Name, std::string> refused_;
};

// The table of all families.
const OperatorTable& Operators();

}  // namespace addend::onnx

#endif  // ADDEND_CORE_ONNX_OPERATORS_H_
