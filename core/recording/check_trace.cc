#include "core/recording/check_trace.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isnan.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/program/compare.h"
#include "core/program/random_state.h"
#include "core/program/recorder.h"
#include "core/program/replay.h"
#include "core/recording/align.h"

namespace addend {
namespace {

// Copies that the model may write.
std::vector<c10::IValue> Copies(const std::vector<c10::IValue>& inputs) {
  std::vector<c10::IValue> copies;
  for (const c10::IValue& input : inputs) {
    std::vector<at::Tensor> tensors;
    const Structure structure = TakeApart(input, "an input", [&](const at::Tensor& tensor) {
      tensors.push_back(tensor.clone());
      return static_cast<int>(tensors.size()) - 1;
    });
    copies.push_back(PutTogether(structure, [&](int k) { return tensors[k]; }));
  }
  return copies;
}

// The largest difference relative to the expected numbers; infinite where dtypes, shapes or NaNs differ.
double RelativeError(const at::Tensor& expected, const at::Tensor& found) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (expected.defined() != found.defined()) return kInfinity;
  if (!expected.defined() || expected.numel() == 0) return 0;
  if (expected.scalar_type() != found.scalar_type() || expected.sizes() != found.sizes()) return kInfinity;
  if (expected.is_meta() || expected.equal(found)) return 0;
  const auto wide = [](const at::Tensor& tensor) {
    return tensor.detach().to(tensor.is_complex() ? at::kComplexDouble : at::kDouble);
  };
  const at::Tensor x = wide(expected);
  const at::Tensor y = wide(found);
  // Equal elements, infinities included, and NaN beside NaN are no difference.
  const at::Tensor same = x.eq(y).logical_or(at::isnan(x).logical_and(at::isnan(y)));
  const at::Tensor error = (y - x).abs().masked_fill(same, 0);
  if (at::isnan(error).any().item<bool>()) return kInfinity;
  const double scale = x.abs().nan_to_num(0, 0, 0).max().item<double>();
  const double largest = error.max().item<double>();
  return largest == 0 ? 0 : largest / std::max(scale, std::numeric_limits<double>::min());
}

double Allowed(const at::Tensor& tensor, double tolerance) {
  if (!tensor.defined() || !Continuous(tensor.scalar_type())) return 0;
  switch (RealDtype(tensor.scalar_type())) {
    case at::kDouble:
      return std::max(tolerance, 4 * std::numeric_limits<double>::epsilon());
    case at::kFloat:
      return std::max<double>(tolerance, 4 * std::numeric_limits<float>::epsilon());
    case at::kHalf:
      return std::max(tolerance, 4e-3);
    default:
      return std::max(tolerance, 3e-2);
  }
}

class Checker {
 public:
  Checker(const RecordExample& record, const std::vector<c10::IValue>& inputs, const CheckOptions& options)
      : record_(record), inputs_(inputs), options_(options) {}

  CheckReport Run() {
    RandomState generator(TensorsIn(inputs_));
    report_.recording = record_(Copies(inputs_), 0);
    const RecordedProgram& program = *report_.recording.program;
    Hints(program);
    // The replay draws what the first run drew, the second run draws something else.
    const Recording again = record_(Copies(inputs_), 0);
    CompareGraphs(again, -1, /*sizes=*/true);
    CompareConstants(again, -1);
    if (!SameOutputs(again.output)) BlameFirstDifference();
    generator.Restore();
    CompareReplay(inputs_, report_.recording.output, -1);
    if (options_.out_of_place) {
      generator.Restore();
      CompareReplay(inputs_, report_.recording.output, -1, /*out_of_place=*/true);
    }
    for (size_t k = 0; k < options_.inputs.size(); ++k) TryInputs(static_cast<int>(k), generator);
    return std::move(report_);
  }

 private:
  const RecordedProgram& program() const { return *report_.recording.program; }

  void Add(FindingKind kind, bool error, int set, int call, std::string message) {
    Finding finding;
    finding.kind = kind;
    finding.error = error;
    finding.input_set = set;
    if (call >= 0) finding.position = PositionOf(program(), call);
    finding.message = std::move(message);
    report_.findings.push_back(std::move(finding));
  }

  // Adds hints that need no other run.
  void Hints(const RecordedProgram& program) {
    for (size_t c = 0; c < program.calls.size(); ++c) {
      const RecordedCall& call = program.calls[c];
      const std::string name = FullName(call.op.schema());
      const int index = static_cast<int>(c);
      if (call.random) Add(FindingKind::kRandom, false, -1, index, absl::StrCat(name, " draws random numbers"));
      for (size_t a = 0; a < call.arguments.size(); ++a) {
        const std::string& argument = call.op.schema().arguments()[a].name();
        const bool flag = argument == "train" || argument == "training" || argument == "use_input_stats";
        if (!flag || !call.arguments[a].isBool() || !call.arguments[a].toBool()) continue;
        Add(FindingKind::kTraining, false, -1, index, absl::StrCat(name, " runs in training mode; call eval() first"));
      }
    }
    for (const RecordedStorage& storage : program.storages) {
      const bool own = storage.kind == ValueKind::kParameter || storage.kind == ValueKind::kBuffer;
      if (!own || storage.writers.empty()) continue;
      Add(FindingKind::kState, false, -1, storage.writers.front(),
          absl::StrCat("the model overwrites its ", ValueKindName(storage.kind), " ",
                       program.values[storage.value].name, "; a replay begins with what it was when recorded"));
    }
    if (options_.strict && Mutable(program.output)) {
      Add(FindingKind::kOutput, false, -1, -1,
          "the output holds a list or a dictionary: whoever gets it may change it; tuples are safe");
    }
  }

  static bool Mutable(const Structure& structure) {
    if (structure.kind == Structure::Kind::kList || structure.kind == Structure::Kind::kDict) return true;
    return std::any_of(structure.elements.begin(), structure.elements.end(), Mutable);
  }

  void CompareGraphs(const Recording& other, int set, bool sizes) {
    RecordedProgram own = program();
    RecordedProgram found = *other.program;
    if (!sizes) Align({&own, &found});
    const auto difference = FirstDifference(own, found, sizes);
    if (!difference) return;
    Add(FindingKind::kGraph, true, set, -1,
        absl::StrCat(set < 0 ? "a second run differs: " : "the model does something else for these inputs: ",
                     difference->text, set < 0 ? OperatorAt(own, difference->call) : ""));
    if (difference->call >= 0) report_.findings.back().position = PositionOf(own, difference->call);
  }

  // ", at aten::add"; empty where no operator is meant.
  static std::string OperatorAt(const RecordedProgram& program, int call) {
    if (call < 0 || call >= static_cast<int>(program.calls.size())) return "";
    return absl::StrCat(", at ", FullName(program.calls[call].op.schema()));
  }

  // Constants are numbered as they come.
  void CompareConstants(const Recording& other, int set) {
    for (size_t s = 0; s < program().storages.size(); ++s) {
      const RecordedStorage& a = program().storages[s];
      const int like = StorageLike(program(), static_cast<int>(s), *other.program);
      if (like < 0) continue;
      const RecordedStorage& b = other.program->storages[like];
      if (a.kind != ValueKind::kConstant || b.kind != ValueKind::kConstant) continue;
      if (!a.initial.defined() || !b.initial.defined() || RelativeError(a.initial, b.initial) == 0) continue;
      const int reader = FirstReader(static_cast<int>(s));
      Add(FindingKind::kConstant, true, set, reader,
          absl::StrCat(program().values[a.value].name, " is a constant of the program, but it ",
                       set < 0 ? "changes from run to run" : "depends on the input",
                       set < 0 ? OperatorAt(program(), reader) : ""));
    }
  }

  int FirstReader(int storage) const {
    for (size_t c = 0; c < program().calls.size(); ++c) {
      for (const TensorUse& use : program().calls[c].uses) {
        if (use.value >= 0 && program().values[use.value].storage == storage) return static_cast<int>(c);
      }
    }
    return -1;
  }

  bool SameOutputs(const c10::IValue& output) const {
    const auto expected = TensorsIn({report_.recording.output});
    const auto found = TensorsIn({output});
    if (expected.size() != found.size()) return false;
    for (size_t k = 0; k < expected.size(); ++k) {
      if (RelativeError(expected[k], found[k]) > Allowed(expected[k], options_.tolerance)) return false;
    }
    return true;
  }

  // Two runs gave different results: which operator gave two results for the same arguments?
  void BlameFirstDifference() {
    const Replay replay(report_.recording.program);
    ReplayOptions every;
    every.every_value = true;
    every.guards = false;
    try {
      const auto first = replay.Run(Copies(inputs_), every).values;
      const auto second = replay.Run(Copies(inputs_), every).values;
      for (size_t v = 0; v < first.size(); ++v) {
        if (RelativeError(first[v].second, second[v].second) == 0) continue;
        const int call = program().values[v].call;
        Add(FindingKind::kValue, true, -1, call,
            absl::StrCat("two runs give different results, and ", first[v].first, " is the first that differs"));
        return;
      }
    } catch (const std::exception&) {  // what cannot be replayed has findings of its own
    }
    Add(FindingKind::kValue, true, -1, -1,
        "two runs give different results although their operators do not: the model has a state of its own");
  }

  void CompareReplay(const std::vector<c10::IValue>& inputs, const c10::IValue& output, int set,
                     bool out_of_place = false) {
    const std::string what = out_of_place ? "the replay without writes in place" : "the replay";
    ReplayOptions options;
    options.out_of_place = out_of_place;
    c10::IValue replayed;
    const std::vector<c10::IValue> given = Copies(inputs);
    try {
      replayed = Replay(report_.recording.program).Run(given, options).output;
    } catch (const Error& e) {
      Add(FindingKind::kGuard, true, set, static_cast<int>(e.position().op_index), e.what());
      return;
    } catch (const c10::Error& e) {
      Add(FindingKind::kValue, true, set, -1, absl::StrCat(what, " fails: ", e.what_without_backtrace()));
      return;
    }
    const auto expected = TensorsIn({output});
    const auto found = TensorsIn({replayed});
    for (size_t k = 0; k < expected.size() && k < found.size(); ++k) {
      const double error = RelativeError(expected[k], found[k]);
      report_.worst_error = std::max(report_.worst_error, error);
      if (error <= Allowed(expected[k], options_.tolerance)) continue;
      Add(FindingKind::kValue, true, set, -1,
          absl::StrCat("output ", k, " of ", what, " differs from the model's by ", error, " of its largest number"));
    }
  }

  void TryInputs(int set, RandomState& generator) {
    const std::vector<c10::IValue>& inputs = options_.inputs[set];
    generator.Restore();
    Recording other;
    try {
      other = record_(Copies(inputs), static_cast<size_t>(set) + 1);
    } catch (const Error& e) {
      Add(FindingKind::kGraph, true, set, -1, e.what());
      return;
    }
    const auto given = TensorsIn(inputs);
    const auto recorded = TensorsIn(inputs_);
    bool same_sizes = given.size() == recorded.size();
    for (size_t k = 0; same_sizes && k < given.size(); ++k) same_sizes = given[k].sizes() == recorded[k].sizes();
    CompareGraphs(other, set, same_sizes);
    if (same_sizes) CompareConstants(other, set);
    generator.Restore();
    CompareReplay(inputs, other.output, set);
  }

  const RecordExample& record_;
  const std::vector<c10::IValue>& inputs_;
  const CheckOptions& options_;
  CheckReport report_;
};

}  // namespace

const char* FindingKindName(FindingKind kind) {
  switch (kind) {
    case FindingKind::kGraph:
      return "graph";
    case FindingKind::kValue:
      return "value";
    case FindingKind::kGuard:
      return "guard";
    case FindingKind::kConstant:
      return "constant";
    case FindingKind::kRandom:
      return "random";
    case FindingKind::kTraining:
      return "training";
    case FindingKind::kState:
      return "state";
    case FindingKind::kOutput:
      return "output";
  }
  return "";
}

bool CheckReport::ok() const {
  return std::none_of(findings.begin(), findings.end(), [](const Finding& finding) { return finding.error; });
}

CheckReport CheckTrace(Model& model, const std::vector<c10::IValue>& inputs, const CheckOptions& options,
                       const RecordOptions& record_options) {
  const std::shared_ptr<ModelState> before = model.KeepState();
  const RecordExample record = [&](const std::vector<c10::IValue>& given, size_t example) {
    // The second run follows the first without a reset: what differs between them is what is looked for. Further inputs
    // begin as the recording did.
    if (example > 0) before->Restore();
    return Record(model, given, record_options);
  };
  try {
    CheckReport report = CheckTrace(record, inputs, options);
    before->Restore();
    return report;
  } catch (...) {
    before->Restore();
    throw;
  }
}

CheckReport CheckTrace(const RecordExample& record, const std::vector<c10::IValue>& inputs,
                       const CheckOptions& options) {
  return Checker(record, inputs, options).Run();
}

Json FindingsRecord(const CheckReport& report) {
  Json record = {{"format", "addend.check_trace"},
                 {"version", 1},
                 {"ok", report.ok()},
                 {"worst_error", report.worst_error},
                 {"findings", Json::array()}};
  for (const Finding& finding : report.findings) {
    record["findings"].push_back({{"kind", FindingKindName(finding.kind)},
                                  {"error", finding.error},
                                  {"input_set", finding.input_set < 0 ? Json() : Json(finding.input_set)},
                                  {"position", finding.position.Describe()},
                                  {"message", finding.message}});
  }
  return record;
}

}  // namespace addend
