// Writes the tables by which the rules are judged (core/rules/cases, core/explain/rewrite_cases.h) as conformance cases
// of laws, one file for each table: export_cases FOLDER. Every entry of the registry has a case, or is named here with
// the reason why it has none; else nothing is written and the program fails.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "core/explain/rewrite_cases.h"
#include "core/intercept/operator.h"
#include "core/program/written_aside.h"
#include "core/rules/cases/cases.h"
#include "core/rules/cases/element_cases.h"
#include "core/rules/registry.h"
#include "core/rules/rule_testing.h"

namespace addend {
namespace {

constexpr int kComponents = 3;

// ---------------------------------------------------------------------------------------------- what is not exported

// Rules and rewrites that no call by name reaches here.
const std::map<std::string, std::string>& Outside() {
  static const auto& outside = *new std::map<std::string, std::string>{};
  return outside;
}

// Cases that cannot be asked for by name and by numbers, by operator or by "operator what".
const std::map<std::string, std::string>& LeftOut() {
  static const char* const kComplexNumber = "the format has no complex numbers beside tensors";
  static const auto& left_out =
      *new std::map<std::string, std::string>{{"aten::mul.Scalar complex", kComplexNumber},
                                              {"aten::mul.Scalar real_by_complex", kComplexNumber},
                                              {"aten::div.Scalar complex", kComplexNumber},
                                              {"aten::masked_fill.Scalar complex", kComplexNumber}};
  return left_out;
}

// Two calls give different numbers, so that no law is more than a matter of shapes.
bool DrawsNumbers(const std::string& op) {
  static const auto& random = *new std::set<std::string>{
      "aten::native_dropout", "aten::normal", "aten::normal_", "aten::uniform_", "aten::random_", "aten::exponential_",
      "aten::cauchy_", "aten::log_normal_", "aten::geometric_", "aten::bernoulli", "aten::bernoulli_",
      "aten::rrelu_with_noise", "aten::rrelu_with_noise_", "aten::dropout",
      // Nor do those that give memory as it is, or draw. The second result of _ctc_loss is such memory in part.
      "aten::_ctc_loss", "aten::empty_like", "aten::new_empty", "aten::new_empty_strided", "aten::rand_like",
      "aten::randn_like"};
  return random.count(op.substr(0, op.find('.'))) > 0;
}

// LAPACK rounds the same numbers differently at another address.
bool RoundsByAddress(const std::string& op) {
  static const auto& names = *new std::set<std::string>{"aten::linalg_lstsq"};
  return names.count(op.substr(0, op.find('.'))) > 0;
}

// LibTorch refuses these on memory that it has not allocated, which plain tensors of some languages have.
bool NeedsOwnMemory(const std::string& op) {
  static const auto& names = *new std::set<std::string>{"aten::_lazy_clone"};
  return names.count(op) > 0;
}

// Lengths of sequences, which an operator reads on the CPU whatever device it computes on.
bool StaysOnCpu(const c10::FunctionSchema& schema, const c10::Argument& argument) {
  return argument.name() == "batch_sizes" ||
         (argument.name() == "lengths" && schema.name() == "aten::_pack_padded_sequence");
}

// Eigenvectors are known up to their sign, and what separates the reference's own signs from the value's is left over.
bool JumpsBetweenSigns(const std::string& op) {
  static const auto& names = *new std::set<std::string>{"aten::_linalg_eigh", "aten::symeig", "aten::_linalg_svd"};
  return names.count(op.substr(0, op.find('.'))) > 0;
}

// ------------------------------------------------------------------------------------------------------------ numbers

// Numbers of few binary digits, which a float32 holds and a reader can read.
at::Tensor Short(const at::Tensor& t) {
  if (!t.defined() || (!t.is_floating_point() && !t.is_complex())) return t;
  const at::Tensor wide = t.to(t.is_complex() ? at::kComplexDouble : at::kDouble);
  const auto round = [](const at::Tensor& x) { return (x * 64).round() / 64; };
  return (t.is_complex() ? at::view_as_complex(round(at::view_as_real(wide.resolve_conj()).contiguous())) : round(wide))
      .to(t.scalar_type());
}

std::string Number(double x) {
  if (std::isnan(x)) return "\"NaN\"";
  if (std::isinf(x)) return x > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  std::string text;
  for (const int digits : {6, 10, 15, 17}) {
    text = absl::StrFormat("%.*g", digits, x);
    if (std::stod(text) == x) break;
  }
  return absl::StrContains(text, '.') || absl::StrContains(text, 'e') ? text : text + ".0";
}

std::string Quoted(const std::string& text) {
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}}), "\"");
}

std::string Integers(at::IntArrayRef list) { return absl::StrCat("[", absl::StrJoin(list, ", "), "]"); }

// {"shape": .., "data": .., "dtype": ..}; no dtype for floating-point numbers, which have that of the case.
std::string TensorText(const at::Tensor& t) {
  std::vector<std::string> numbers;
  std::string dtype;
  const at::Tensor flat = t.contiguous().reshape({-1});
  if (t.is_complex()) {
    dtype = "c128";
    const at::Tensor pairs = at::view_as_real(flat.to(at::kComplexDouble).resolve_conj()).contiguous();
    for (int64_t i = 0; i < pairs.numel(); ++i) numbers.push_back(Number(pairs.data_ptr<double>()[i]));
  } else if (t.is_floating_point()) {
    const at::Tensor wide = flat.to(at::kDouble).contiguous();
    for (int64_t i = 0; i < wide.numel(); ++i) numbers.push_back(Number(wide.data_ptr<double>()[i]));
  } else {
    static const auto& names =
        *new std::map<at::ScalarType, std::string>{{at::kLong, "i64"}, {at::kInt, "i32"}, {at::kShort, "i16"},
                                                   {at::kChar, "i8"},  {at::kByte, "u8"}, {at::kBool, "bool"}};
    dtype = names.at(t.scalar_type());
    const at::Tensor whole = flat.to(at::kLong).contiguous();
    for (int64_t i = 0; i < whole.numel(); ++i) {
      const int64_t own = whole.data_ptr<int64_t>()[i];
      numbers.push_back(t.scalar_type() == at::kBool ? (own ? "true" : "false") : absl::StrCat(own));
    }
  }
  return absl::StrCat("{\"shape\": ", Integers(t.sizes()), ", \"data\": [", absl::StrJoin(numbers, ", "), "]",
                      dtype.empty() ? "" : absl::StrCat(", \"dtype\": \"", dtype, "\""), "}");
}

// ---------------------------------------------------------------------------------------------------------- arguments

// One argument: its tensors at the value and, where it moves, at the reference. What rests has them alike.
struct Given {
  c10::IValue value;
  c10::IValue reference;
};

bool IsFloating(const at::Tensor& t) { return t.defined() && (t.is_floating_point() || t.is_complex()); }
bool Moves(const at::Tensor& value, const at::Tensor& reference) {
  return IsFloating(value) && !value.is_same(reference);
}

c10::IValue Mapped(const c10::IValue& value, const std::function<at::Tensor(const at::Tensor&)>& f) {
  if (value.isTensor()) return f(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& t : value.toTensorVector()) list.push_back(f(t));
    return list;
  }
  if (!value.isList()) return value;
  bool tensors = false;
  std::vector<c10::IValue> parts;
  for (const c10::IValue& element : value.toListRef()) {
    tensors = tensors || element.isTensor();
    parts.push_back(element.isTensor() ? c10::IValue(f(element.toTensor())) : element);
  }
  return tensors ? OptionalListOf(parts) : value;
}

Given Short(const Given& given) {
  const auto change = [](const at::Tensor& t) { return Short(t); };
  if (given.value.is(given.reference)) {
    const c10::IValue both = Mapped(given.value, change);
    return {both, both};
  }
  // List elements that do not move stay one tensor in value and reference.
  if (!given.value.isTensorList()) return {Mapped(given.value, change), Mapped(given.reference, change)};
  c10::List<at::Tensor> values;
  c10::List<at::Tensor> references;
  const auto of_value = given.value.toTensorVector();
  const auto of_reference = given.reference.toTensorVector();
  for (size_t k = 0; k < of_value.size(); ++k) {
    values.push_back(change(of_value[k]));
    references.push_back(of_value[k].is_same(of_reference[k]) ? values.get(k) : change(of_reference[k]));
  }
  return {values, references};
}

// Writes arguments as a case has them. `only`: of the tensors that move, that one (-1: all); the others are plain.
class Writer {
 public:
  Writer(int only, bool composed_writes) : only_(only), composed_writes_(composed_writes) {}

  std::string Text(const c10::FunctionSchema& schema, const c10::Argument& declared, const Given& given) {
    const bool written =
        declared.alias_info() != nullptr && declared.alias_info()->isWrite() && !IsWrittenAside(schema, declared);
    const bool is_dtype = absl::StrContains(declared.real_type()->repr_str(), "ScalarType");
    std::string text = Value(given.value, given.reference, written, is_dtype);
    if (StaysOnCpu(schema, declared)) text.insert(text.size() - 1, ", \"device\": \"cpu\"");
    return declared.kwarg_only() ? absl::StrCat("{\"name\": ", Quoted(declared.name()), ", \"value\": ", text, "}")
                                 : text;
  }
  bool complex() const { return complex_; }
  bool single() const { return single_; }
  int moving() const { return moving_; }

 private:
  std::string Value(const c10::IValue& value, const c10::IValue& reference, bool written, bool is_dtype) {
    if (value.isNone()) return "null";
    if (value.isTensor()) return OfTensor(value.toTensor(), reference.toTensor(), written);
    if (value.isBool()) return value.toBool() ? "true" : "false";
    if (value.isInt()) return is_dtype ? DtypeText(value.toInt()) : absl::StrCat(value.toInt());
    if (value.isDouble()) return DoubleText(value.toDouble());
    if (value.isString()) return Quoted(value.toStringRef());
    if (value.isScalar() && value.toScalar().isComplex()) throw std::runtime_error("a complex number");
    if (value.isIntList()) return Integers(value.toIntVector());
    if (!value.isList()) throw std::runtime_error("an argument of type " + value.tagKind());
    std::vector<std::string> parts;
    const auto values = value.toListRef();
    const auto references = reference.toListRef();
    for (size_t k = 0; k < values.size(); ++k) parts.push_back(Value(values[k], references[k], written, is_dtype));
    return absl::StrCat("{\"list\": [", absl::StrJoin(parts, ", "), "]}");
  }

  static std::string DoubleText(double x) {
    return std::isfinite(x) ? Number(x) : absl::StrCat("{\"f64\": ", Number(x), "}");
  }

  static std::string DtypeText(int64_t dtype) {
    static const auto& names = *new std::map<int64_t, std::string>{{static_cast<int64_t>(at::kDouble), "f64"},
                                                                   {static_cast<int64_t>(at::kFloat), "f32"},
                                                                   {static_cast<int64_t>(at::kLong), "i64"},
                                                                   {static_cast<int64_t>(at::kComplexDouble), "c128"},
                                                                   {static_cast<int64_t>(at::kBool), "bool"}};
    return absl::StrCat("{\"dtype\": \"", names.at(dtype), "\"}");
  }

  std::string OfTensor(const at::Tensor& value, const at::Tensor& reference, bool written) {
    if (!value.defined()) return "null";
    complex_ = complex_ || value.is_complex();
    single_ = single_ || value.scalar_type() == at::kFloat;
    const bool moves = Moves(value, reference) && (only_ < 0 || only_ == seen_);
    seen_ += Moves(value, reference);
    // Written tensors need room for components, even if they do not move.
    if (!moves && !(written && composed_writes_ && IsFloating(value))) {
      return absl::StrCat("{\"tensor\": ", TensorText(value), "}");
    }
    const at::Tensor labels =
        at::arange(value.numel(), at::kLong).add(moving_++).remainder(kComponents).view(value.sizes());
    return absl::StrCat("{\"composition\": {\"value\": ", TensorText(value),
                        ", \"baseline\": ", TensorText(moves ? reference : value),
                        ", \"split\": {\"labels\": ", TensorText(labels), "}, \"numc\": ", kComponents, "}}");
  }

  int only_;
  bool composed_writes_;
  bool complex_ = false;
  bool single_ = false;
  int seen_ = 0;
  int moving_ = 0;
};

// -------------------------------------------------------------------------------------------------------------- cases

struct Exported {
  std::string op, what;
  std::vector<Given> arguments;
};

std::vector<at::Tensor> TensorsIn(const c10::IValue& value) {
  if (value.isTensor()) return {value.toTensor()};
  std::vector<at::Tensor> all;
  if (value.isTensorList()) return value.toTensorVector();
  if (!value.isList()) return all;
  for (const c10::IValue& element : value.toListRef()) {
    if (element.isTensor()) all.push_back(element.toTensor());
  }
  return all;
}

int CountMoving(const Exported& own) {
  int count = 0;
  for (const Given& given : own.arguments) {
    const auto values = TensorsIn(given.value);
    const auto references = TensorsIn(given.reference);
    for (size_t k = 0; k < values.size(); ++k) count += Moves(values[k], references[k]);
  }
  return count;
}

// The call as the rules see it; nothing where the operator refuses the numbers.
std::optional<RuleCall> Described(const Exported& own, const Policy& policy) {
  std::vector<GivenArgument> arguments;
  for (const Given& given : own.arguments) arguments.emplace_back(given.value, given.reference);
  try {
    return OperatorCall(own.op, arguments).Describe(policy);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

bool NoNan(const RuleCall& call) {
  for (const RuleOutput& output : call.outputs) {
    if (IsFloating(output.value) &&
        (output.value.isnan().any().item<bool>() || output.reference.isnan().any().item<bool>())) {
      return false;
    }
  }
  return true;
}

struct Laws {
  std::string kind;
  std::vector<std::string> faithful, fast;
  bool differs = false;  // whether fast is something else
};

Laws LawsOf(const Exported& own, bool is_rewrite) {
  Laws laws;
  laws.fast = {"dtype_preserved", "shape_preserved"};
  if (DrawsNumbers(own.op)) {
    laws.faithful = laws.fast;
    return laws;
  }
  if (NeedsOwnMemory(own.op)) {
    // Those that call nothing but the composed operator.
    laws.fast = {"component_permutation", "component_merge", "zero_component", "deterministic"};
    laws.faithful = laws.fast;
    return laws;
  }
  const auto add = [&](const char* law) {
    laws.fast.push_back(law);
    laws.faithful.push_back(law);
  };
  laws.faithful = laws.fast;
  for (const char* law : {"recovery", "component_permutation", "component_merge", "zero_component"}) add(law);
  if (!RoundsByAddress(own.op)) add("deterministic");
  if (is_rewrite) {
    add("reference");
    laws.kind = "rewrite";
    laws.differs = true;
    laws.faithful.push_back("no_leftover");
    laws.faithful.push_back("identity");
    return laws;
  }
  const auto call = Described(own, Faithful());
  if (!call) return laws;
  const auto names = RuleNames(own.op);
  const Rule* rule = Registry::Default().Find(names.first, names.second);
  const RuleResult built = rule->build(*call);
  laws.kind = absl::AsciiStrToLower(KindName(built.kind));
  const bool stands_in =
      std::any_of(built.stand_ins.begin(), built.stand_ins.end(), [](const at::Tensor& t) { return t.defined(); });
  if (!stands_in) add("reference");
  if ((built.exact || built.kind == Kind::kPath) && !JumpsBetweenSigns(own.op)) laws.faithful.push_back("no_leftover");
  const auto fast_call = Described(own, Fast());
  laws.differs = fast_call && rule->build(*fast_call).exact != built.exact;
  if (built.kind == Kind::kLinear || built.kind == Kind::kAffine) add("row_by_row");
  laws.faithful.push_back("identity");
  return laws;
}

// The name of an operator's cases.
std::string NameOf(const std::string& op) {
  return absl::StrReplaceAll(absl::StripPrefix(op, "aten::"), {{"::", "_"}, {".", "_"}});
}

class Family {
 public:
  explicit Family(std::string name) : name_(std::move(name)) {}

  void Add(Exported own, bool is_rewrite) {
    const size_t dot = own.op.find('.');
    const auto found = Operator::Find(own.op.substr(0, dot), dot == std::string::npos ? "" : own.op.substr(dot + 1));
    if (!found) return;
    const std::string title = absl::StrCat(own.op, own.what.empty() ? "" : " ", own.what);
    if (LeftOut().count(own.op) > 0 || LeftOut().count(title) > 0) return;
    // Short numbers where the operator takes them as it takes the drawn ones.
    Exported shorter = own;
    for (Given& given : shorter.arguments) given = Short(given);
    const auto call = Described(shorter, Faithful());
    const auto drawn = Described(own, Faithful());
    const bool as_drawn = DrawsNumbers(own.op) || (call && drawn && (NoNan(*call) || !NoNan(*drawn)));
    if (call && drawn && as_drawn) own = std::move(shorter);

    if (!is_rewrite && !Described(own, Faithful())) {
      Problems().push_back(title + " refuses its arguments");
      return;
    }
    if (is_rewrite && !Described(own, Faithful())) {
      // An operator of other devices: called here it fails, whatever its arguments.
      AddRefused(NameOf(own.op), own.op, "INVALID_ARGUMENT");
      return;
    }

    // Every case in float64; only the first two of an operator in float32 and with one moving operand at a time: what
    // comes behind differs in shapes, not in dtypes.
    const int before = seen_[own.op]++;
    const int moving = CountMoving(own);
    const c10::FunctionSchema& schema = found->schema();
    const Laws laws = LawsOf(own, is_rewrite);
    for (int only = -1; only < (moving > 1 && before < 2 ? moving : 0); ++only) {
      Writer writer(only, /*composed_writes=*/true);
      std::vector<std::string> arguments;
      try {
        for (size_t a = 0; a < own.arguments.size(); ++a) {
          arguments.push_back(writer.Text(schema, schema.arguments()[a], own.arguments[a]));
        }
      } catch (const std::runtime_error& e) {
        Problems().push_back(absl::StrCat(title, " has ", e.what(), ", which no case can say; name it in LeftOut()"));
        return;
      }
      std::string name = NameOf(own.op);
      if (!own.what.empty()) absl::StrAppend(&name, "_", own.what);
      if (only >= 0) absl::StrAppend(&name, "_only_", only);
      for (const bool fast : {false, true}) {
        if (fast && (only >= 0 || !laws.differs)) continue;
        std::vector<std::string> quoted;
        for (const std::string& law : fast ? laws.fast : laws.faithful) quoted.push_back(Quoted(law));
        std::string text = absl::StrCat("    {\n      \"name\": ", Quoted(name + (fast ? "_fast" : "")), ",\n");
        if (writer.complex()) absl::StrAppend(&text, "      \"level\": \"optional:complex128\",\n");
        absl::StrAppend(&text, "      \"op\": ", Quoted(own.op), ",\n");
        if (!laws.kind.empty()) absl::StrAppend(&text, "      \"kind\": ", Quoted(laws.kind), ",\n");
        absl::StrAppend(&text, "      \"policies\": [", fast ? "\"fast\"" : "\"faithful\"", "],\n");
        if (writer.single()) {  // the operator takes nothing else
          absl::StrAppend(&text, "      \"dtypes\": [\"f32\"],\n");
        } else if (writer.complex() || only >= 0 || before >= 2) {
          absl::StrAppend(&text, "      \"dtypes\": [\"f64\"],\n");
        }
        if (DrawsNumbers(own.op) || RoundsByAddress(own.op)) absl::StrAppend(&text, "      \"repeatable\": false,\n");
        absl::StrAppend(&text, "      \"args\": [\n        ", absl::StrJoin(arguments, ",\n        "), "\n      ],\n");
        absl::StrAppend(&text, "      \"laws\": [", absl::StrJoin(quoted, ", "), "]\n    }");
        cases_.push_back(std::move(text));
      }
    }
    Cover(own.op);
  }

  void AddMissing(const std::string& name) { AddRefused(NameOf(name), name, "NOT_FOUND"); }

  void Write(const std::string& folder) const {
    std::ofstream file(absl::StrCat(folder, "/", name_, ".json"));
    file << "{\n  \"suite\": 1,\n  \"family\": " << Quoted(name_) << ",\n  \"spec\": \"SPEC.md#laws\",\n"
         << "  \"generated_by\": \"tests/conformance/laws/export_cases.cc\",\n  \"cases\": [\n"
         << absl::StrJoin(cases_, ",\n") << "\n  ]\n}\n";
    if (!file.flush()) throw std::runtime_error("cannot write " + name_);
  }

  static std::vector<std::string>& Problems() {
    static auto& problems = *new std::vector<std::string>;
    return problems;
  }
  static std::set<std::string>& Covered() {
    static auto& covered = *new std::set<std::string>;
    return covered;
  }

 private:
  static void Cover(const std::string& op) {
    const auto names = RuleNames(op);
    if (const Rule* rule = Registry::Default().Find(names.first, names.second)) Covered().insert(rule->name);
    if (const Rewrite* rewrite = Registry::Default().FindRewrite(names.first, names.second))
      Covered().insert(rewrite->name);
  }

  // A call without arguments is refused.
  void AddRefused(const std::string& name, const std::string& op, const std::string& code) {
    Cover(op);
    Covered().insert(op);
    if (!refused_.insert(op).second) return;
    cases_.push_back(absl::StrCat("    {\n      \"name\": ", Quoted(name), ",\n      \"op\": ", Quoted(op),
                                  ",\n      \"policies\": [{}],\n      \"dtypes\": [\"f64\"],\n      \"args\": [],\n",
                                  "      \"error\": ", Quoted(code), "\n    }"));
  }

  std::string name_;
  std::vector<std::string> cases_;
  std::map<std::string, int> seen_;  // cases by operator
  std::set<std::string> refused_;
};

// -------------------------------------------------------------------------------------------------------------- tables

Family OfRules(const std::string& name, void (*add)(std::vector<Case>*)) {
  Family family(name);
  std::vector<Case> cases;
  add(&cases);
  uint64_t seed = 1;
  for (const Case& own : cases) {
    Draw draw(at::kDouble, seed++);
    Exported exported{own.op, own.what, {}};
    for (const GivenArgument& argument : own.arguments(draw))
      exported.arguments.push_back({argument.value, argument.reference});
    family.Add(std::move(exported), /*is_rewrite=*/false);
  }
  return family;
}

Family OfRewrites() {
  Family family("laws_rewrites");
  std::set<std::string> seen;
  for (const RewriteCase& own : RewriteCases()) {
    const std::string op = absl::StrReplaceAll(own.op, {{"newer::", "aten::"}});
    if (Operator::Overloads(op.substr(0, op.find('.'))).empty()) continue;  // of another LibTorch; see NotHere()
    // Cases of newer operators are listed for the oldest LibTorch too, under a name of its own.
    if (!seen.insert(absl::StrCat(op, " ", own.title)).second) continue;
    RewriteDraw draw(at::kDouble, 0.5);
    Exported exported{op, own.title, {}};
    for (const c10::IValue& value : own.arguments(draw)) {
      const auto reference = [&](const at::Tensor& t) {
        for (size_t k = 0; k < draw.values.size(); ++k) {
          if (t.is_same(draw.values[k])) return draw.references[k];
        }
        return t;
      };
      const bool moves = std::any_of(draw.values.begin(), draw.values.end(), [&](const at::Tensor& t) {
        const auto own_tensors = TensorsIn(value);
        return std::any_of(own_tensors.begin(), own_tensors.end(), [&](const at::Tensor& o) { return o.is_same(t); });
      });
      exported.arguments.push_back({value, moves ? Mapped(value, reference) : value});
    }
    family.Add(std::move(exported), /*is_rewrite=*/true);
  }
  return family;
}

// Results that depend on sizes only, and so carry nothing.
void AddPlainResults(std::vector<Case>* cases) {
  const auto alone = [](Draw& d) -> Arguments { return {d.Moving({2, 3})}; };
  const auto with_number = [](Draw& d) -> Arguments { return {d.Moving({2, 3}), 1.5}; };
  for (const char* op :
       {"aten::zeros_like", "aten::ones_like", "aten::empty_like", "aten::rand_like", "aten::randn_like"}) {
    cases->push_back({op, "", alone});
  }
  cases->push_back({"aten::full_like", "", with_number});
  const Sizes sizes = {3, 2};
  for (const char* op : {"aten::new_zeros", "aten::new_ones", "aten::new_empty"}) {
    cases->push_back({op, "", [=](Draw& d) -> Arguments { return {d.Moving({2, 3}), sizes}; }});
  }
  cases->push_back({"aten::new_empty_strided", "", [=](Draw& d) -> Arguments {
                      return {d.Moving({2, 3}), sizes, Sizes{1, 3}};
                    }});
  cases->push_back({"aten::new_full", "", [=](Draw& d) -> Arguments { return {d.Moving({2, 3}), sizes, 1.5}; }});
}

// An operator of other versions of LibTorch is not found in this one.
Family NotHere(const std::vector<std::string>& names) {
  Family family("laws_elsewhere");
  family.AddMissing("aten::no_such_operator");
  for (const std::string& name : names) {
    if (Operator::Overloads(name.substr(0, name.find('.'))).empty()) family.AddMissing(name);
  }
  return family;
}

int Main(const std::string& folder) {
  const std::vector<std::pair<std::string, void (*)(std::vector<Case>*)>> tables = {
      {"laws_activation", AddActivations},
      {"laws_arithmetic", AddArithmetic},
      {"laws_product", AddProducts},
      {"laws_window", AddWindows},
      {"laws_normalization", AddNormalizations},
      {"laws_reduction", AddReductions},
      {"laws_indexing", AddIndexing},
      {"laws_scatter", AddScatters},
      {"laws_rearrangement", AddRearrangements},
      {"laws_resample", AddResampling},
      {"laws_embedding", AddEmbeddings},
      {"laws_random", AddRandom},
      {"laws_shape", AddShapes},
      {"laws_special", AddSpecial},
      {"laws_selection", AddSelections},
      {"laws_attention", AddAttention},
      {"laws_stepwise", AddStepwise},
      {"laws_spectral", AddSpectral},
      {"laws_linalg", AddLinalg},
      {"laws_gradient", AddGradients},
      {"laws_plain", AddPlainResults}};
  std::vector<Family> families;
  for (const auto& [name, add] : tables) families.push_back(OfRules(name, add));
  families.push_back(OfRewrites());
  std::vector<std::string> names;
  for (const Rule* rule : Registry::Default().All()) names.push_back(rule->name);
  for (const Rewrite* rewrite : Registry::Default().AllRewrites()) names.push_back(rewrite->name);
  families.push_back(NotHere(names));

  std::vector<std::string>& problems = Family::Problems();
  for (const std::string& name : names) {
    const bool covered = Family::Covered().count(name) > 0;
    const bool outside = Outside().count(name) > 0;
    if (covered == outside) {
      problems.push_back(
          name + (covered ? " has a case; take it from Outside()" : " has no case, and no reason in Outside()"));
    }
  }
  for (const std::string& problem : problems) std::cerr << problem << "\n";
  if (!problems.empty()) return 1;
  for (const Family& family : families) family.Write(folder);
  return 0;
}

}  // namespace
}  // namespace addend

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: export_cases FOLDER\n";
    return 2;
  }
  try {
    return addend::Main(argv[1]);
  } catch (const std::exception& e) {
    std::cerr << e.what() << "\n";
    return 1;
  }
}
