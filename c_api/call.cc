// Operators called by name.
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <list>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "c_api/run.h"
#include "c_api/warnings.h"
#include "core/composition/shapley.h"
#include "core/eager/argument.h"
#include "core/eager/eager.h"
#include "core/intercept/tracing_scope.h"
#include "core/program/output_names.h"

namespace addend::c_api {

struct OpenList {
  std::string name;
  std::vector<Argument> items;
};

struct ArgumentsBody {
  std::vector<Argument> arguments;
  std::vector<OpenList> open;  // lists that were begun and not ended, the innermost last
  std::vector<std::shared_ptr<const ExplainedRun>> runs = {};  // that gave compositions among them
};

namespace {

Argument WithName(const std::string& name, Argument argument) {
  return name.empty() ? std::move(argument) : Named(name, std::move(argument));
}

void Add(ArgumentsBody& body, const std::string& name, Argument argument) {
  if (body.open.empty()) {
    body.arguments.push_back(WithName(name, std::move(argument)));
    return;
  }
  if (!name.empty()) throw InvalidArgument(absl::StrCat("name is ", name, "; elements of a list have no names"));
  body.open.back().items.push_back(std::move(argument));
}

template <typename T>
addend_status* AddArgument(addend_arguments* arguments, const char* name, const T& make) noexcept {
  return Guard([&] {
    ArgumentsBody& body = Get(arguments, "arguments");
    const std::string own = TextOrEmpty(name, "name");
    Add(body, own, make());
  });
}

// Lists of numbers are what LibTorch calls lists of numbers, not of anything.
Argument MakeList(std::vector<Argument> items) {
  bool integers = !items.empty();
  bool numbers = !items.empty();
  bool bools = !items.empty();
  for (const Argument& item : items) {
    const bool constant = item.form() == Argument::Form::kConstant;
    integers &= constant && item.constant().isInt();
    numbers &= constant && (item.constant().isInt() || item.constant().isDouble());
    bools &= constant && item.constant().isBool();
  }
  if (integers) {
    std::vector<int64_t> list;
    for (const Argument& item : items) list.push_back(item.constant().toInt());
    return list;
  }
  if (numbers) {
    std::vector<double> list;
    for (const Argument& item : items) list.push_back(item.constant().toScalar().toDouble());
    return list;
  }
  if (bools) {
    std::vector<bool> list;
    for (const Argument& item : items) list.push_back(item.constant().toBool());
    return list;
  }
  return Argument(std::move(items));
}

// The arguments of one call. What the operator writes is a copy, so that handles stay as they are.
class CallArguments {
 public:
  CallArguments(const std::string& op, const ArgumentsBody& body)
      : arguments_(body.arguments), bound_(BindClosed(op, body, arguments_)) {
    const std::vector<c10::Argument>& declared = bound_.op.schema().arguments();
    for (size_t a = 0; a < declared.size(); ++a) {
      if (bound_.arguments[a] == nullptr || declared[a].alias_info() == nullptr) continue;
      if (!declared[a].alias_info()->isWrite()) continue;
      Argument& own = arguments_[bound_.arguments[a] - arguments_.data()];
      own = WithName(own.name(), Writable(own));
    }
  }
  Results Call(const CallOptions& options = {}) const { return CallBound(bound_, arguments_, options); }

 private:
  static BoundCall BindClosed(const std::string& op, const ArgumentsBody& body, const std::vector<Argument>& own) {
    if (!body.open.empty()) throw FailedPrecondition("a list of arguments was begun and not ended");
    return Bind(op, own);
  }

  Argument Writable(const Argument& argument) {
    switch (argument.form()) {
      case Argument::Form::kTensor:
        return argument.tensor().clone();
      case Argument::Form::kComposition:
        variables_.push_back(*argument.composition());
        return &variables_.back();
      case Argument::Form::kList: {
        std::vector<Argument> items;
        for (const Argument& item : argument.list()) items.push_back(Writable(item));
        return items;
      }
      default:
        return argument;
    }
  }

  std::vector<Argument> arguments_;
  BoundCall bound_;                   // of arguments_
  std::list<Composition> variables_;  // which arguments point to
};

ResultEntry EntryFor(const Result& result, size_t index) {
  ResultEntry entry;
  entry.name = OutputName(index);
  if (result.is_composition()) {
    entry.composition = result.composition();
  } else if (result.plain().isTensor()) {
    entry.tensor = result.plain().toTensor();
  } else if (result.plain().isScalar() && !result.plain().isComplexDouble()) {
    entry.number = result.plain().toScalar();
  } else if (result.plain().isBool()) {
    entry.number = at::Scalar(result.plain().toBool());
  }
  return entry;
}

ResultsBody CallByName(const ContextBody& context, const std::string& op, const ArgumentsBody& body) {
  const Results called = CallArguments(op, body).Call(CallOptions(context.policy, context.rules.get()));
  ResultsBody results;
  bool composed = false;
  for (size_t k = 0; k < called.size(); ++k) {
    results.entries.push_back(EntryFor(called[k], k));
    composed |= called[k].is_composition();
  }
  if (composed) {
    auto run = std::make_shared<ExplainedRun>();
    run->report = called.report();
    // The operator has its own reference; whether that is what a program gives on the baseline, nobody has seen.
    run->report.reference_is_model_on_baseline = "unknown";
    run->report.reference_reason =
        "operators were called one by one, and what a program reads of tensors between them is not seen";
    run->preset = context.policy.preset;
    // The log was told of the earlier runs when they ran.
    LogNotes(context, run->report);
    AddWarnings(body.runs, run->report);
    results.run = std::move(run);
  }
  return results;
}

bool HasComposition(const Argument& argument) {
  return argument.composition() != nullptr ||
         std::any_of(argument.list().begin(), argument.list().end(), HasComposition);
}

// Compositions among the arguments, in their order, each once for every place where it stands.
void Collect(const std::vector<Argument>& arguments, std::vector<Composition>& found) {
  for (const Argument& argument : arguments) {
    if (argument.composition() != nullptr) found.push_back(*argument.composition());
    Collect(argument.list(), found);
  }
}

// Copies arguments with tensors in place of the compositions.
std::vector<Argument> Replace(const std::vector<Argument>& arguments, const std::vector<at::Tensor>& tensors,
                              size_t& next) {
  std::vector<Argument> replaced;
  for (const Argument& argument : arguments) {
    if (argument.composition() != nullptr) {
      replaced.push_back(WithName(argument.name(), tensors[next++].clone()));
    } else if (argument.form() == Argument::Form::kList) {
      replaced.push_back(WithName(argument.name(), Replace(argument.list(), tensors, next)));
    } else {
      replaced.push_back(argument);
    }
  }
  return replaced;
}

Composition ExactShapley(const std::string& op, const ArgumentsBody& body) {
  if (!body.open.empty()) throw FailedPrecondition("a list of arguments was begun and not ended");
  std::vector<Composition> compositions;
  Collect(body.arguments, compositions);
  if (compositions.empty()) throw InvalidArgument("there is no composition among the arguments");
  return Shapley(
      [&](const std::vector<at::Tensor>& coalition) {
        size_t next = 0;
        ArgumentsBody plain;
        plain.arguments = Replace(body.arguments, coalition, next);
        return CallArguments(op, plain).Call().tensor(0);
      },
      compositions);
}

}  // namespace

extern "C" {

ADDEND_API addend_status* addend_arguments_create(addend_arguments** out_arguments) noexcept {
  return Guard([&] {
    RequireOut(out_arguments, "out_arguments");
    Give(out_arguments);
  });
}

ADDEND_API addend_status* addend_arguments_add_composition(addend_arguments* arguments, const char* name,
                                                           const addend_composition* composition) noexcept {
  return Guard([&] {
    ArgumentsBody& body = Get(arguments, "arguments");
    const std::string own = TextOrEmpty(name, "name");
    const CompositionBody& given = Get(composition, "composition");
    Add(body, own, Argument(given.composition));
    if (given.run != nullptr) body.runs.push_back(given.run);
  });
}

ADDEND_API addend_status* addend_arguments_add_tensor(addend_arguments* arguments, const char* name,
                                                      const addend_tensor* tensor) noexcept {
  return AddArgument(arguments, name, [&] { return Argument(TensorOf(tensor, "tensor")); });
}

ADDEND_API addend_status* addend_arguments_add_none(addend_arguments* arguments, const char* name) noexcept {
  return AddArgument(arguments, name, [] { return Argument(std::nullopt); });
}

ADDEND_API addend_status* addend_arguments_add_i64(addend_arguments* arguments, const char* name,
                                                   int64_t value) noexcept {
  return AddArgument(arguments, name, [&] { return Argument(value); });
}

ADDEND_API addend_status* addend_arguments_add_f64(addend_arguments* arguments, const char* name,
                                                   double value) noexcept {
  return AddArgument(arguments, name, [&] { return Argument(value); });
}

ADDEND_API addend_status* addend_arguments_add_bool(addend_arguments* arguments, const char* name,
                                                    int32_t value) noexcept {
  return AddArgument(arguments, name, [&] { return Argument(value != 0); });
}

ADDEND_API addend_status* addend_arguments_add_str(addend_arguments* arguments, const char* name,
                                                   const char* value) noexcept {
  return AddArgument(arguments, name, [&] { return Argument(Text(value, "value")); });
}

ADDEND_API addend_status* addend_arguments_add_dtype(addend_arguments* arguments, const char* name,
                                                     int32_t dtype) noexcept {
  return AddArgument(arguments, name, [&] { return Argument(DtypeOf(dtype)); });
}

ADDEND_API addend_status* addend_arguments_add_i64s(addend_arguments* arguments, const char* name,
                                                    const int64_t* values, size_t num_values) noexcept {
  return AddArgument(arguments, name, [&] {
    RequireArray(values, num_values, "values");
    return Argument(std::vector<int64_t>(values, values + num_values));
  });
}

ADDEND_API addend_status* addend_arguments_begin_list(addend_arguments* arguments, const char* name) noexcept {
  return Guard([&] {
    constexpr size_t kDeepest = 16;
    ArgumentsBody& body = Get(arguments, "arguments");
    const std::string own = TextOrEmpty(name, "name");
    if (!own.empty() && !body.open.empty()) {
      throw InvalidArgument(absl::StrCat("name is ", own, "; elements of a list have no names"));
    }
    if (body.open.size() == kDeepest) throw InvalidArgument(absl::StrCat("lists are ", kDeepest, " deep at most"));
    body.open.push_back({own, {}});
  });
}

ADDEND_API addend_status* addend_arguments_end_list(addend_arguments* arguments) noexcept {
  return Guard([&] {
    ArgumentsBody& body = Get(arguments, "arguments");
    if (body.open.empty()) throw FailedPrecondition("no list of arguments was begun");
    OpenList list = std::move(body.open.back());
    body.open.pop_back();
    Add(body, list.name, MakeList(std::move(list.items)));
  });
}

ADDEND_API void addend_arguments_release(addend_arguments* arguments) noexcept { Release(arguments); }

ADDEND_API addend_status* addend_call(const addend_context* context, const char* op, const addend_arguments* arguments,
                                      addend_results** out_results) noexcept {
  return Guard(DetailOf(context), [&] {
    const ContextBody& own = ContextOf(context);
    const std::string name = Text(op, "op");
    const ArgumentsBody& body = Get(arguments, "arguments");
    RequireOut(out_results, "out_results");
    RequireLibTorch();
    // Plain tensors: the operator is one of those that an open trace records.
    if (std::any_of(body.arguments.begin(), body.arguments.end(), HasComposition)) RequireNoTrace();
    SetCallbackNumber(0);
    const WarningsToLog warnings(own.log);
    Give(out_results, CallByName(own, name, body));
  });
}

ADDEND_API addend_status* addend_call_shapley(const char* op, const addend_arguments* arguments,
                                              addend_composition** out_composition) noexcept {
  return Guard([&] {
    const std::string name = Text(op, "op");
    const ArgumentsBody& body = Get(arguments, "arguments");
    RequireOut(out_composition, "out_composition");
    RequireLibTorch();
    RequireNoTrace();
    const WarningsToLog warnings(ContextOf(nullptr).log);
    Give(out_composition, ExactShapley(name, body), RunBehind(body.runs));
  });
}

}  // extern "C"

}  // namespace addend::c_api
