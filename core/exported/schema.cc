#include "core/exported/schema.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/exported/json_reader.h"
#include "core/exported/schema_graph.h"
#include "core/exported/schema_signature.h"
#include "core/exported/tree_spec.h"

namespace addend::exported {
namespace {

using weights::kMapNodeCost;

constexpr int64_t kMajor = 8;

// How the model was called: its structures, as text until the names of named tuples are known.
struct CallSignature {
  bool given = false;
  std::string in_spec;
  std::string out_spec;
  std::vector<std::string> names;
};

class Reader {
 public:
  Reader(absl::string_view text, const std::string& where, MemoryBudget* budget)
      : text_(text), where_(where), budget_(budget), json_(text, where, budget) {}

  Program Read() {
    ReadVersion();
    bool module = false;
    json_.Object([&](const std::string& key) {
      if (key == "graph_module") {
        module = true;
        ReadModule();
      } else if (key == "range_constraints") {
        ReadRanges();
      } else if (key == "torch_version") {
        program_.torch_version = json_.String();
        // Older files leave the version out.
        if (absl::StartsWith(program_.torch_version, "<")) program_.torch_version.clear();
      } else if (key == "guards_code") {
        program_.guards = Strings();
      } else if (key == "schema_version" || key == "opset_version" || key == "verifiers") {
        // Versions of operators are found out by looking for the operators.
        json_.Skip();
      } else {
        json_.SkipUnknown(key);
      }
    });
    json_.End();
    if (!module) json_.Fail("has no \"graph_module\"");
    CheckSignature();
    return std::move(program_);
  }

 private:
  // The version decides whether the rest can be understood, and stands behind it.
  void ReadVersion() {
    JsonReader json(text_, where_, budget_);
    bool found = false;
    json.Object([&](const std::string& key) {
      if (key != "schema_version") return json.Skip();
      found = true;
      // Before major 5 it was one number.
      if (json.Next() == JsonReader::Kind::kNumber) {
        program_.schema_major = json.Integer();
        return;
      }
      json.Object([&](const std::string& part) {
        if (part == "major") {
          program_.schema_major = json.Integer();
        } else if (part == "minor") {
          program_.schema_minor = json.Integer();
        } else {
          json.SkipUnknown(part);
        }
      });
    });
    if (!found) json.Fail("has no \"schema_version\": it is no exported program");
    if (program_.schema_major != kMajor) {
      throw InvalidArgument(absl::StrCat(
          where_, ": /schema_version: is schema ", program_.schema_major, ".", program_.schema_minor, "; only schema ",
          kMajor, " is read, which torch.export writes since 2.4: export the model with ",
          program_.schema_major < kMajor ? "a newer torch" : "an older torch, or update Addend"));
    }
  }

  std::vector<std::string> Strings() {
    std::vector<std::string> strings;
    json_.Array([&] {
      budget_->TakeElement(strings);
      strings.push_back(json_.String());
    });
    return strings;
  }

  void ReadModule() {
    bool graph = false;
    bool signature = false;
    CallSignature call;
    NamedTupleFields fields;
    json_.Object([&](const std::string& key) {
      if (key == "graph") {
        graph = true;
        program_.graph = ReadGraph(json_);
      } else if (key == "signature") {
        signature = true;
        ReadSignature();
      } else if (key == "module_call_graph") {
        json_.Array([&] { ReadModuleCall(call); });
      } else if (key == "metadata") {
        json_.Skip();
      } else if (key == "treespec_namedtuple_fields") {
        ReadNamedTuples(fields);
      } else {
        json_.SkipUnknown(key);
      }
    });
    if (!graph) json_.Fail("has no \"graph\"");
    if (!signature) json_.Fail("has no \"signature\"");
    if (!call.given) json_.Fail("has no entry for the whole model in \"module_call_graph\"");
    program_.in_spec = ReadTreeSpec(call.in_spec, fields, absl::StrCat(json_.Place(), "/in_spec"), budget_);
    program_.out_spec = ReadTreeSpec(call.out_spec, fields, absl::StrCat(json_.Place(), "/out_spec"), budget_);
    program_.forward_arg_names = std::move(call.names);
  }

  void ReadSignature() {
    json_.Object([&](const std::string& key) {
      if (key == "input_specs") {
        json_.Array([&] {
          budget_->TakeElement(program_.inputs);
          program_.inputs.push_back(ReadInputSpec(json_));
        });
      } else if (key == "output_specs") {
        json_.Array([&] {
          budget_->TakeElement(program_.outputs);
          program_.outputs.push_back(ReadOutputSpec(json_));
        });
      } else {
        json_.SkipUnknown(key);
      }
    });
  }

  // Reads one module's call; only that of the whole model is kept.
  void ReadModuleCall(CallSignature& whole) {
    bool is_whole = false;
    CallSignature call;
    json_.Object([&](const std::string& key) {
      if (key == "fqn") {
        is_whole = json_.String().empty();
      } else if (key == "signature") {
        if (json_.Next() == JsonReader::Kind::kNull) return json_.Null();
        call.given = true;
        json_.Object([&](const std::string& field) {
          if (field == "in_spec") {
            call.in_spec = json_.String();
          } else if (field == "out_spec") {
            call.out_spec = json_.String();
          } else if (field == "forward_arg_names") {
            if (json_.Next() == JsonReader::Kind::kNull) return json_.Null();
            call.names = Strings();
          } else if (field == "inputs" || field == "outputs") {
            json_.Skip();  // the same as the graph's
          } else {
            json_.SkipUnknown(field);
          }
        });
      } else {
        json_.SkipUnknown(key);
      }
    });
    if (!is_whole || !call.given) return;
    if (whole.given) json_.Fail("says twice how the whole model is called");
    whole = std::move(call);
  }

  void ReadNamedTuples(NamedTupleFields& fields) {
    json_.Object([&](const std::string& name) {
      budget_->Take(kMapNodeCost + 2 * sizeof(std::string) + name.size());
      json_.Object([&](const std::string& key) {
        if (key == "field_names") {
          fields[name] = Strings();
        } else {
          json_.SkipUnknown(key);
        }
      });
    });
  }

  void ReadRanges() {
    json_.Object([&](const std::string& symbol) {
      budget_->Take(kMapNodeCost + sizeof(std::string) + sizeof(RangeConstraint) + symbol.size());
      RangeConstraint& range = program_.ranges[symbol];
      json_.Object([&](const std::string& key) {
        if (key == "min_val") {
          range.min = Bound();
        } else if (key == "max_val") {
          range.max = Bound();
        } else {
          json_.SkipUnknown(key);
        }
      });
    });
  }

  // No bound is null, infinite, or a number that no size reaches.
  std::optional<int64_t> Bound() {
    if (json_.Next() == JsonReader::Kind::kNull) {
      json_.Null();
      return std::nullopt;
    }
    const double bound = json_.Float();
    constexpr double kFar = 4611686018427387904.0;  // 2^62
    if (std::isnan(bound) || (std::abs(bound) < kFar && bound != std::floor(bound))) json_.Fail("is no bound");
    if (!(std::abs(bound) < kFar)) return std::nullopt;
    return static_cast<int64_t>(bound);
  }

  // ------------------------------------------------------------------------------------- what has to fit together

  [[noreturn]] void Fail(const std::string& what) const {
    throw InvalidArgument(absl::StrCat(where_, ": /graph_module/signature: ", what));
  }

  void CheckSignature() const {
    const size_t inputs = program_.graph.inputs.size();
    if (program_.inputs.size() != inputs) {
      Fail(absl::StrCat("describes ", program_.inputs.size(), " inputs, and the graph has ", inputs));
    }
    const size_t outputs = program_.graph.outputs.size();
    if (program_.outputs.size() != outputs) {
      Fail(absl::StrCat("describes ", program_.outputs.size(), " outputs, and the graph has ", outputs));
    }
    for (size_t k = 0; k < inputs; ++k) {
      const InputSpec& spec = program_.inputs[k];
      const bool same =
          spec.kind == InputSpec::Kind::kConstantInput ||
          (spec.argument.kind == program_.graph.inputs[k].kind && spec.argument.name == program_.graph.inputs[k].name);
      if (!same) Fail(absl::StrCat("input ", k, " is not the graph's"));
    }
    for (size_t k = 0; k < outputs; ++k) {
      const Argument& argument = program_.outputs[k].argument;
      const bool same =
          argument.kind == program_.graph.outputs[k].kind && argument.name == program_.graph.outputs[k].name;
      if (!same) Fail(absl::StrCat("output ", k, " is not the graph's"));
    }
    const auto count = [](const auto& specs, const auto& counts) {
      return static_cast<size_t>(std::count_if(specs.begin(), specs.end(), counts));
    };
    const size_t given = count(program_.inputs, [](const InputSpec& spec) {
      return spec.kind == InputSpec::Kind::kUserInput || spec.kind == InputSpec::Kind::kConstantInput;
    });
    if (CountLeaves(program_.in_spec) != given) {
      Fail(absl::StrCat("has ", given, " inputs that users give, and the structure of the arguments ",
                        CountLeaves(program_.in_spec)));
    }
    const size_t returned = count(program_.outputs, [](const OutputSpec& spec) {
      return spec.kind == OutputSpec::Kind::kUserOutput || spec.kind == OutputSpec::Kind::kLoss;
    });
    if (CountLeaves(program_.out_spec) != returned) {
      Fail(absl::StrCat("has ", returned, " outputs that users get, and the structure of the results ",
                        CountLeaves(program_.out_spec)));
    }
  }

  absl::string_view text_;
  const std::string& where_;
  MemoryBudget* budget_;
  JsonReader json_;
  Program program_;
};

}  // namespace

Program ReadSchema(absl::string_view text, const std::string& where, MemoryBudget* budget) {
  return Reader(text, where, budget).Read();
}

}  // namespace addend::exported
