#include "tests/onnx/suite.h"

#include <ATen/ATen.h>
#include <ATen/core/List.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/tensor_text.h"
#include "core/model/run_model.h"
#include "core/onnx/external_files.h"
#include "core/onnx/model_proto.h"
#include "core/onnx/onnx_model.h"
#include "core/onnx/onnx_testing.h"
#include "core/onnx/tensor_data.h"
#include "core/onnx/to_tensor.h"
#include "core/onnx/wire.h"
#include "core/weights/mapped_file.h"

namespace addend {
namespace {

namespace fs = std::filesystem;
using c10::IValue;
using onnx::TypeProto;

constexpr double kRelative = 1e-3;
constexpr double kAbsolute = 1e-7;
constexpr double kRelativeBfloat16 = 1.0 / 64;

// -------------------------------------------------------------------------------------------------- values from files

// Reads the bytes of a TensorProto: as the only initializer of a model, because only models are read. `type`: what the
// test's model takes or gives there.
at::Tensor ReadTensor(const std::string& bytes, onnx::DataType type) {
  onnx::MessageWriter tensor;
  tensor.Raw(bytes);
  onnx::GraphParts parts;
  parts.initializers = {tensor};
  const std::string model = onnx::ModelMessage(onnx::GraphMessage(parts)).bytes();
  weights::Bytes view;
  view.data = const_cast<char*>(model.data());  // only read
  view.size = model.size();
  const onnx::ModelProto proto = onnx::ReadModelProto(view, "tensor.pb");
  onnx::ExternalFiles files;
  onnx::TensorData data = onnx::ReadTensorData(proto.graph.initializers.at(0), proto, &files);
  // NumPy has no bfloat16, whose bits older packages write.
  if (type == onnx::DataType::kBfloat16 && data.type == onnx::DataType::kUint16) data.type = type;
  return onnx::ToTensor(onnx::Widened(data, "tensor.pb", &proto.file->budget), "tensor.pb", &proto.file->budget);
}

IValue ReadValue(const std::string& bytes, const TypeProto& type);

// SequenceProto: tensors in field 3, sequences in 5, optionals in 7. OptionalProto: a tensor in 3, a sequence in 5.
std::vector<IValue> ReadElements(const std::string& bytes, const TypeProto& type) {
  onnx::WireFile file("value.pb", bytes);
  onnx::MessageReader reader(&file, "SequenceProto");
  std::vector<IValue> elements;
  while (reader.Next()) {
    if (reader.field() == 3 || reader.field() == 5 || reader.field() == 7) {
      elements.push_back(ReadValue(std::string(reader.Bytes()), *type.element));
    }
  }
  return elements;
}

IValue ReadValue(const std::string& bytes, const TypeProto& type) {
  if (type.kind == TypeProto::Kind::kTensor) return ReadTensor(bytes, type.data_type);
  if (type.kind == TypeProto::Kind::kOptional) {
    const std::vector<IValue> elements = ReadElements(bytes, type);
    return elements.empty() ? IValue() : elements[0];
  }
  if (type.kind != TypeProto::Kind::kSequence) throw Unimplemented("the test has a value of another kind");
  c10::impl::GenericList list(c10::AnyType::get());
  for (const IValue& element : ReadElements(bytes, type)) list.push_back(element);
  return list;
}

std::string ReadBytes(const fs::path& path) {
  const weights::Bytes bytes = weights::MapFile(path.string());
  return std::string(bytes.data, bytes.size);
}

// The values of "input_0.pb", "input_1.pb", ...
std::vector<IValue> ReadValues(const fs::path& folder, const std::string& what,
                               const std::vector<const TypeProto*>& types) {
  std::vector<IValue> values;
  for (size_t k = 0; k < types.size(); ++k) {
    const fs::path path = folder / absl::StrCat(what, "_", k, ".pb");
    if (!fs::exists(path)) break;
    // An empty message: a scalar that says nothing is no tensor; an optional without a value is.
    values.push_back(fs::file_size(path) == 0 ? ReadValue("", *types[k]) : ReadValue(ReadBytes(path), *types[k]));
  }
  return values;
}

// --------------------------------------------------------------------------------------------------------- comparison

std::string DifferenceOfTensors(const at::Tensor& found, const at::Tensor& expected) {
  if (found.scalar_type() != expected.scalar_type() || found.sizes() != expected.sizes()) {
    return absl::StrCat("is ", TensorText(found), ", not ", TensorText(expected));
  }
  if (!found.is_floating_point() && !found.is_complex()) {
    if (at::equal(found, expected)) return "";
    return absl::StrCat(found.ne(expected).sum().item<int64_t>(), " of ", found.numel(), " elements differ");
  }
  const bool is_bfloat16 = found.scalar_type() == at::kBFloat16;
  const auto wide = [](const at::Tensor& tensor) {
    return tensor.is_complex() ? at::view_as_real(tensor).to(at::kDouble) : tensor.to(at::kDouble);
  };
  const at::Tensor a = wide(found), b = wide(expected);
  if (at::allclose(a, b, is_bfloat16 ? kRelativeBfloat16 : kRelative, kAbsolute, /*equal_nan=*/true)) return "";
  const at::Tensor off = a.sub(b).abs().nan_to_num(1e300, 1e300, 1e300).masked_fill(a.eq(b), 0);
  const at::Tensor place = off.argmax();
  return absl::StrCat("differs by up to ", off.max().item<double>(), " (", a.flatten()[place].item<double>(),
                      " instead of ", b.flatten()[place].item<double>(), ")");
}

std::string DifferenceOf(const IValue& found, const IValue& expected, const std::string& name) {
  if (expected.isNone() != found.isNone() || expected.isTensor() != found.isTensor()) {
    return absl::StrCat(name, " is of another kind");
  }
  if (expected.isNone()) return "";
  if (expected.isTensor()) {
    const std::string difference = DifferenceOfTensors(found.toTensor(), expected.toTensor());
    return difference.empty() ? "" : absl::StrCat(name, " ", difference);
  }
  const auto have = found.toList().vec(), want = expected.toList().vec();
  if (have.size() != want.size()) return absl::StrCat(name, " has ", have.size(), " elements, not ", want.size());
  for (size_t k = 0; k < want.size(); ++k) {
    const std::string difference = DifferenceOf(have[k], want[k], absl::StrCat(name, "[", k, "]"));
    if (!difference.empty()) return difference;
  }
  return "";
}

// The outputs of a model, of which several are a dictionary.
std::vector<IValue> OutputsOf(const IValue& result, size_t count) {
  if (count == 1) return {result};
  std::vector<IValue> outputs;
  for (const auto& entry : result.toGenericDict()) outputs.push_back(entry.value());
  return outputs;
}

std::vector<const TypeProto*> TypesOf(const std::vector<onnx::ValueInfoProto>& values) {
  std::vector<const TypeProto*> types;
  for (const onnx::ValueInfoProto& value : values) types.push_back(&value.type);
  return types;
}

std::string RunDataSet(Model& model, const std::vector<IValue>& inputs, const std::vector<IValue>& expected) {
  const std::vector<IValue> outputs = OutputsOf(RunModel(model, inputs, "the suite's inputs"), expected.size());
  if (outputs.size() != expected.size()) {
    return absl::StrCat("gives ", outputs.size(), " outputs, not ", expected.size());
  }
  for (size_t k = 0; k < expected.size(); ++k) {
    const std::string difference = DifferenceOf(outputs[k], expected[k], absl::StrCat("output ", k));
    if (!difference.empty()) return difference;
  }
  return "";
}

void RunDataSets(const SuiteTest& test, SuiteRun& run) {
  const std::string path = (fs::path(test.folder) / "model.onnx").string();
  run.model = LoadOnnx(path);
  const onnx::ModelProto proto = onnx::ReadModelProto(weights::MapFile(path), path);
  std::vector<fs::path> sets;
  for (const auto& entry : fs::directory_iterator(test.folder)) {
    if (entry.is_directory()) sets.push_back(entry.path());
  }
  std::sort(sets.begin(), sets.end());
  for (const fs::path& set : sets) {
    std::vector<IValue> inputs = ReadValues(set, "input", TypesOf(proto.graph.inputs));
    const std::vector<IValue> expected = ReadValues(set, "output", TypesOf(proto.graph.outputs));
    run.inputs.push_back(inputs);
    const std::string difference = RunDataSet(*run.model, inputs, expected);
    if (!difference.empty()) {
      run.outcome = {Outcome::Kind::kFailed, difference};
      return;
    }
  }
  if (sets.empty()) run.outcome = {Outcome::Kind::kFailed, "there is nothing to compare with"};
}

}  // namespace

std::string Outcome::Text() const {
  switch (kind) {
    case Kind::kPassed:
      return "passed";
    case Kind::kRefused:
      return absl::StrCat("refused: ", what);
    case Kind::kFailed:
      return absl::StrCat("failed: ", what);
  }
  return "";
}

std::vector<SuiteTest> TestsOf(const std::string& suite) {
  std::vector<SuiteTest> tests;
  for (const auto& kind : fs::directory_iterator(suite)) {
    if (!kind.is_directory()) continue;
    for (const auto& entry : fs::directory_iterator(kind.path())) {
      if (!fs::exists(entry.path() / "model.onnx")) continue;
      tests.push_back({absl::StrCat(kind.path().filename().string(), "/", entry.path().filename().string()),
                       entry.path().string()});
    }
  }
  std::sort(tests.begin(), tests.end(), [](const SuiteTest& a, const SuiteTest& b) { return a.name < b.name; });
  return tests;
}

SuiteRun RunTest(const SuiteTest& test) {
  SuiteRun run;
  try {
    RunDataSets(test, run);
  } catch (const Error& error) {
    const bool refused = error.code() == absl::StatusCode::kUnimplemented;
    run.outcome = {refused ? Outcome::Kind::kRefused : Outcome::Kind::kFailed, error.what()};
  } catch (const std::exception& error) {
    run.outcome = {Outcome::Kind::kFailed, SentenceOf(error)};
  }
  return run;
}

}  // namespace addend
