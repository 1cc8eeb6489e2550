#include "core/exported/schema_signature.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/exported/refusals.h"
#include "core/exported/schema_graph.h"

namespace addend::exported {
namespace {

struct InputKind {
  absl::string_view key;
  InputSpec::Kind kind;
  absl::string_view name;  // the field that has the name in the state; empty: none
};

constexpr InputKind kInputKinds[] = {
    {"user_input", InputSpec::Kind::kUserInput, ""},
    {"parameter", InputSpec::Kind::kParameter, "parameter_name"},
    {"buffer", InputSpec::Kind::kBuffer, "buffer_name"},
    {"tensor_constant", InputSpec::Kind::kTensorConstant, "tensor_constant_name"},
    {"custom_obj", InputSpec::Kind::kCustomObject, "custom_obj_name"},
    {"token", InputSpec::Kind::kToken, ""},
    {"constant_input", InputSpec::Kind::kConstantInput, "name"},
};

struct OutputKind {
  absl::string_view key;
  OutputSpec::Kind kind;
  absl::string_view name;
};

constexpr OutputKind kOutputKinds[] = {
    {"user_output", OutputSpec::Kind::kUserOutput, ""},
    {"loss_output", OutputSpec::Kind::kLoss, ""},
    {"buffer_mutation", OutputSpec::Kind::kBufferMutation, "buffer_name"},
    {"parameter_mutation", OutputSpec::Kind::kParameterMutation, "parameter_name"},
    {"user_input_mutation", OutputSpec::Kind::kUserInputMutation, "user_input_name"},
    {"gradient_to_parameter", OutputSpec::Kind::kGradientToParameter, "parameter_name"},
    {"gradient_to_user_input", OutputSpec::Kind::kGradientToUserInput, "user_input_name"},
    {"token", OutputSpec::Kind::kToken, ""},
};

template <typename Kinds>
auto KindOf(JsonReader& json, const Kinds& kinds, const std::string& key, const char* what) {
  for (const auto& kind : kinds) {
    if (key == kind.key) return kind;
  }
  json.Fail(absl::StrCat("is ", what,
                         " of a kind that is not known to this version of Addend; update Addend, or export ",
                         "the model with an older torch"));
}

// Reads an input that was a constant at export.
c10::IValue ReadConstant(JsonReader& json) {
  c10::IValue value;
  json.Union([&](const std::string& key) {
    if (key == "as_none") {
      json.Bool();
    } else if (key == "as_int") {
      value = json.Integer();
    } else if (key == "as_float") {
      value = json.Float();
    } else if (key == "as_string") {
      value = json.String();
    } else if (key == "as_bool") {
      value = json.Bool();
    } else {
      json.Fail("is no constant that is known");
    }
  });
  return value;
}

}  // namespace

InputSpec ReadInputSpec(JsonReader& json) {
  InputSpec spec;
  json.Union([&](const std::string& key) {
    const InputKind kind = KindOf(json, kInputKinds, key, "an input");
    spec.kind = kind.kind;
    bool argument = false;
    json.Object([&](const std::string& field) {
      if (field == "arg" && kind.kind == InputSpec::Kind::kCustomObject) {
        json.Skip();
      } else if (field == "arg") {
        argument = true;
        spec.argument = kind.kind == InputSpec::Kind::kUserInput ? ReadArgument(json) : ReadNamed(json, "as_tensor");
      } else if (!kind.name.empty() && field == kind.name) {
        spec.name = json.String();
      } else if (kind.kind == InputSpec::Kind::kBuffer && field == "persistent") {
        // Files of older writers have null.
        if (json.Next() == JsonReader::Kind::kNull) return json.Null();
        spec.persistent = json.Bool();
      } else if (kind.kind == InputSpec::Kind::kConstantInput && field == "value") {
        spec.value = ReadConstant(json);
      } else {
        json.SkipUnknown(field);
      }
    });
    if (kind.kind == InputSpec::Kind::kCustomObject) {
      throw CustomObject(json.Place(), absl::StrCat("the program takes the custom object ", Quoted(spec.name)));
    }
    if (!argument && kind.kind != InputSpec::Kind::kConstantInput) json.Fail("has no \"arg\"");
    if (!kind.name.empty() && spec.name.empty()) json.Fail(absl::StrCat("has no \"", kind.name, "\""));
  });
  return spec;
}

OutputSpec ReadOutputSpec(JsonReader& json) {
  OutputSpec spec;
  json.Union([&](const std::string& key) {
    const OutputKind kind = KindOf(json, kOutputKinds, key, "an output");
    spec.kind = kind.kind;
    bool argument = false;
    json.Object([&](const std::string& field) {
      if (field == "arg") {
        argument = true;
        spec.argument = kind.kind == OutputSpec::Kind::kUserOutput ? ReadArgument(json) : ReadNamed(json, "as_tensor");
      } else if (!kind.name.empty() && field == kind.name) {
        spec.name = json.String();
      } else {
        json.SkipUnknown(field);
      }
    });
    if (!argument) json.Fail("has no \"arg\"");
    if (!kind.name.empty() && spec.name.empty()) json.Fail(absl::StrCat("has no \"", kind.name, "\""));
  });
  return spec;
}

}  // namespace addend::exported
