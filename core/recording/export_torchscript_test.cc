// Names of modules, parameters and inputs that TorchScript cannot read, or would take for something else.
#include "core/recording/export_torchscript.h"

#include <ATen/ATen.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>
#include <unistd.h>

#include <map>

#include "core/base/error_testing.h"
#include "core/program/random_testing.h"
#include "core/program/tensor_io.h"
#include "core/recording/learn_sizes.h"
#include "core/recording/record_program.h"

namespace addend {
namespace {

using at::Tensor;
using testing::Contains;
using testing::Not;
using Named = std::vector<std::pair<std::string, Tensor>>;

// Python's keywords, words of TorchScript and of its files, methods of modules, and texts that are no identifiers.
const std::vector<std::string>& Words() {
  static const auto* const kWords = new std::vector<std::string>{"False",
                                                                 "None",
                                                                 "True",
                                                                 "and",
                                                                 "as",
                                                                 "assert",
                                                                 "async",
                                                                 "await",
                                                                 "break",
                                                                 "class",
                                                                 "continue",
                                                                 "def",
                                                                 "del",
                                                                 "elif",
                                                                 "else",
                                                                 "except",
                                                                 "finally",
                                                                 "for",
                                                                 "from",
                                                                 "global",
                                                                 "if",
                                                                 "import",
                                                                 "in",
                                                                 "is",
                                                                 "lambda",
                                                                 "nonlocal",
                                                                 "not",
                                                                 "or",
                                                                 "pass",
                                                                 "raise",
                                                                 "return",
                                                                 "try",
                                                                 "while",
                                                                 "with",
                                                                 "yield",
                                                                 "match",
                                                                 "case",
                                                                 "print",
                                                                 "exec",
                                                                 "Ellipsis",
                                                                 "NoneType",
                                                                 "self",
                                                                 "inputs",
                                                                 "input",
                                                                 "training",
                                                                 "forward",
                                                                 "ops",
                                                                 "CONSTANTS",
                                                                 "torch",
                                                                 "__torch__",
                                                                 "aten",
                                                                 "prim",
                                                                 "int",
                                                                 "float",
                                                                 "bool",
                                                                 "str",
                                                                 "inf",
                                                                 "nan",
                                                                 "Tensor",
                                                                 "List",
                                                                 "fork",
                                                                 "annotate",
                                                                 "uninitialized",
                                                                 "__getstate__",
                                                                 "__setstate__",
                                                                 "__annotations__",
                                                                 "__parameters__",
                                                                 "__buffers__",
                                                                 "_is_full_backward_hook",
                                                                 "0",
                                                                 "12",
                                                                 "1a",
                                                                 "a-b",
                                                                 "a b",
                                                                 "a/b",
                                                                 "a+b",
                                                                 "is not",
                                                                 "not in",
                                                                 "<=>",
                                                                 "...x",
                                                                 "\xc3\xa9",
                                                                 "\xe4\xb8\xad",
                                                                 "a\"b",
                                                                 "a'b",
                                                                 "a\\b",
                                                                 "a\tb",
                                                                 "a\nb",
                                                                 "\x7f",
                                                                 "#",
                                                                 "getattr",
                                                                 "range",
                                                                 "list",
                                                                 "tuple",
                                                                 "len",
                                                                 "unchecked_cast",
                                                                 "Dict",
                                                                 "Optional",
                                                                 "Device",
                                                                 "device",
                                                                 "_",
                                                                 "__",
                                                                 "in_",
                                                                 "x0"};
  return *kWords;
}

// The sum of the tensors, each times the input.
std::shared_ptr<Model> Sum(const Named& named, const std::vector<std::string>& paths, bool buffers) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : named) names.push_back(name);
  return FromFunction(
      [named](const std::vector<Tensor>& in) {
        Tensor sum = in[0].exp();
        for (const auto& [name, tensor] : named) sum = sum + in[0] * tensor;
        return sum;
      },
      named, paths, buffers ? names : std::vector<std::string>());
}

torch::jit::Module Exported(Model& model, const std::vector<c10::IValue>& inputs, const RecordOptions& options = {}) {
  const std::string path = testing::TempDir() + "/names.pt";
  ExportTorchScript(*Record(model, inputs, options).program, path);
  return torch::jit::load(path);
}

std::vector<std::string> NamesIn(const torch::jit::Module& module) {
  std::vector<std::string> names;
  for (const auto& parameter : module.named_parameters()) names.push_back(parameter.name);
  return names;
}

void ExpectSame(const Named& named, const std::vector<std::string>& paths) {
  const at::NoGradGuard no_grad;
  const Tensor x = Random({3}, 1);
  const Tensor y = Random({3}, 2);
  for (const bool buffers : {false, true}) {
    const auto model = Sum(named, paths, buffers);
    torch::jit::Module exported = Exported(*model, {x});
    EXPECT_TRUE(at::equal(exported.forward({y}).toTensor(), model->Run({y}).toTensor()));
  }
}

TEST(ExportNames, ReadsEveryName) {
  for (const std::string& word : Words()) {
    SCOPED_TRACE(word);
    ExpectSame({{word, Random({3}, 3)}}, {});
    ExpectSame({{word + ".weight", Random({3}, 3)}}, {word});
    ExpectSame({{"a." + word + ".b." + word, Random({3}, 3)}}, {"a", "a." + word, "a." + word + ".b"});
  }
}

TEST(ExportNames, KeepsNeighboursApart) {
  Named named;
  std::vector<std::string> paths;
  for (const std::string& word : Words()) {
    named.emplace_back(word, Random({3}, named.size()));
    for (const char* own : {"in", "in_", "in__", "class"}) {
      named.emplace_back("m" + word + "." + own, Random({3}, named.size()));
    }
    paths.push_back("m" + word);
  }
  // A module and a tensor of one name.
  named.emplace_back("both", Random({3}, named.size()));
  named.emplace_back("both.weight", Random({3}, named.size()));
  paths.emplace_back("both");
  ExpectSame(named, paths);
}

TEST(ExportNames, ChangesOnlyWhatCannotBeRead) {
  const auto model = Sum({{"in.weight", Random({3}, 1)},
                          {"in_.weight", Random({3}, 2)},
                          {"class", Random({3}, 3)},
                          {"0.lambda", Random({3}, 4)},
                          {"input.weight", Random({3}, 5)}},
                         {"in", "in_", "0", "input"}, false);
  const std::vector<std::string> names = NamesIn(Exported(*model, {Random({3}, 1)}));
  for (const char* name : {"in__.weight", "in_.weight", "class_", "0.lambda", "input.weight"}) {
    EXPECT_THAT(names, Contains(name));
  }
  EXPECT_THAT(names, Not(Contains("in.weight")));
}

TEST(ExportNames, ReadsInputsOfEveryName) {
  const at::NoGradGuard no_grad;
  const auto model = FromFunction([](const std::vector<Tensor>& in) { return in[0] - in[1] * in[2]; });
  const std::vector<c10::IValue> inputs = {Random({3}, 1), Random({3}, 2), Random({3}, 3)};
  for (const std::string& word : Words()) {
    SCOPED_TRACE(word);
    RecordOptions options;
    options.input_names = {word, word + " ", "self"};
    torch::jit::Module exported = Exported(*model, inputs, options);
    EXPECT_TRUE(at::equal(exported.forward(inputs).toTensor(), model->Run(inputs).toTensor()));
  }
}

// A file that cannot be written whole is left as it was.
TEST(Export, ReplacesAFileWholeOrNotAtAll) {
  const at::NoGradGuard no_grad;
  const auto model = FromFunction([](const std::vector<Tensor>& in) { return in[0] * 2; });
  const Recording recording = Record(*model, {Random({3}, 1)});
  const std::string path = testing::TempDir() + "/whole.pt";
  WriteFileWhole(path, "what was there");
  const int taken = open(path.c_str(), O_RDONLY);
  ExportTorchScript(*recording.program, path);
  // Whoever had it open still reads the old one: it was replaced, not written over.
  std::string before(14, ' ');
  EXPECT_EQ(pread(taken, &before[0], before.size(), 0), 14);
  EXPECT_EQ(before, "what was there");
  close(taken);
  torch::jit::Module exported = torch::jit::load(path);
  EXPECT_TRUE(at::equal(exported.forward({at::ones({3}, at::kDouble)}).toTensor(), at::full({3}, 2., at::kDouble)));
  const std::string nowhere = testing::TempDir() + "/no_such_folder/whole.pt";
  EXPECT_THAT(MessageOf([&] { ExportTorchScript(*recording.program, nowhere); }),
              testing::HasSubstr("cannot write " + nowhere));
}

// Runs an exported program: "right", "wrong", or the error that it stops with.
std::string Ran(const RecordedProgram& program, std::vector<c10::IValue> inputs, const Tensor& expected) {
  const std::string path = testing::TempDir() + "/sizes.pt";
  ExportTorchScript(program, path);
  try {
    const Tensor found = torch::jit::load(path).forward(std::move(inputs)).toTensor();
    return at::equal(found, expected) ? "right" : "wrong";
  } catch (const std::exception& e) {
    return e.what();
  }
}

TEST(ExportTorchScript, StopsAtSizesThatTheProgramDoesNotFollow) {
  const auto mean = [](const std::vector<Tensor>& in) { return in[0].sum(0) / in[0].size(0); };
  const auto model = FromFunction(mean);
  const auto expected = [&](const Tensor& x) { return mean({x}); };
  const Tensor x = Random({2, 3}, 1);
  const Tensor taller = Random({4, 3}, 2);
  const auto fixed = Record(*model, {x}).program;
  EXPECT_EQ(Ran(*fixed, {x}, expected(x)), "right");
  EXPECT_THAT(Ran(*fixed, {taller}, expected(taller)),
              testing::HasSubstr("the sizes of input_0 are [4, 3], and [2, 3] were recorded; numbers in this file"));
  EXPECT_THAT(Ran(*fixed, {x[0]}, x), testing::HasSubstr("the sizes of input_0 are [3], and [2, 3]"));
  const auto learned = RecordSizes(*model, {{x}}).program;
  EXPECT_EQ(Ran(*learned, {taller}, expected(taller)), "right");
  EXPECT_THAT(Ran(*learned, {Random({40, 3}, 1)}, x),
              testing::HasSubstr("dimension 0 of input_0 is 40, but sizes from 1 to 9 were tried"));
  EXPECT_THAT(Ran(*learned, {x[0]}, x), testing::HasSubstr("input_0 has 1 dimensions, and 2 were recorded"));
  const auto given = RecordSizes(*model, {{x}, {Random({20, 3}, 1)}}).program;
  EXPECT_EQ(Ran(*given, {Random({40, 3}, 1)}, expected(Random({40, 3}, 1))), "right");
}

}  // namespace
}  // namespace addend
