// Recording and replay agree bit for bit, on models that write, alias, branch, resize and nest.
#include "core/explain/record_program.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/StorageImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include <cstring>
#include <set>

#include "core/base/error_testing.h"
#include "core/explain/program_model.h"
#include "core/explain/small_models.h"
#include "core/explain/tensor_io.h"
#include "core/explain/torchscript.h"
#include "core/program/recorder.h"
#include "core/program/replay.h"

namespace addend {
namespace {

using at::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Tensor Random(at::IntArrayRef sizes, uint64_t seed, at::ScalarType dtype = at::kDouble) {
  auto generator = at::detail::createCPUGenerator(seed);
  return at::randn(sizes, generator, at::TensorOptions().dtype(dtype));
}

// Models whose inputs and outputs are what they like.
class AnyModel : public Model {
 public:
  using Function = std::function<c10::IValue(const std::vector<c10::IValue>&)>;
  explicit AnyModel(Function function) : function_(std::move(function)) {}
  c10::IValue Run(const std::vector<c10::IValue>& inputs) override { return function_(inputs); }
  std::vector<std::pair<std::string, Tensor>> NamedTensors() const override { return named; }
  std::vector<std::string> BufferNames() const override { return buffers; }

  std::vector<std::pair<std::string, Tensor>> named;
  std::vector<std::string> buffers;

 private:
  Function function_;
};

Recording RecordFunction(const std::function<Tensor(const Tensor&)>& function, const Tensor& x) {
  return Record(*FromFunction([&](const std::vector<Tensor>& in) { return function(in[0]); }), {x});
}

// Bit for bit: dtype, sizes, strides, and every element, NaN included.
testing::AssertionResult Same(const Tensor& a, const Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes() || a.strides() != b.strides()) {
    return testing::AssertionFailure() << a.toString() << a.sizes() << " and " << b.toString() << b.sizes();
  }
  const Tensor x = a.detach().resolve_conj().resolve_neg().contiguous();
  const Tensor y = b.detach().resolve_conj().resolve_neg().contiguous();
  if (x.nbytes() == 0 || std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "elements differ";
}

std::vector<Tensor> TensorsOf(const c10::IValue& value) {
  std::vector<Tensor> tensors;
  ForEachTensor(value, [&](const Tensor& tensor) { tensors.push_back(tensor); });
  return tensors;
}

void ExpectSame(const c10::IValue& a, const c10::IValue& b) {
  const std::vector<Tensor> x = TensorsOf(a);
  const std::vector<Tensor> y = TensorsOf(b);
  ASSERT_EQ(x.size(), y.size());
  for (size_t k = 0; k < x.size(); ++k) EXPECT_TRUE(Same(x[k], y[k])) << "tensor " << k;
}

std::vector<std::string> Lines(const RecordedProgram& program) {
  std::vector<std::string> lines;
  for (size_t c = 0; c < program.calls.size(); ++c) lines.push_back(DescribeCall(program, static_cast<int>(c)));
  return lines;
}

// Models with habits that the shared small ones do not have; same input, same dtype.
std::vector<SmallModel> OddModels() {
  return {
      {"tensor_from_numbers",
       [](const Tensor& x) {
         return x * at::tensor({1.0, 2.0, 3.0, 4.0, 5.0, 6.0});
       }},
      {"tensor_from_numbers_written",
       [](const Tensor& x) {
         Tensor c = at::tensor({1.0, 2.0, 3.0, 4.0, 5.0, 6.0});
         const Tensor before = x + c;
         c.mul_(2);
         return before * c;
       }},
      {"memory_filled_by_hand",
       [](const Tensor& x) {
         Tensor c = at::empty({6}, at::kDouble);
         const Tensor view = c.view({2, 3});
         for (int k = 0; k < 6; ++k) c.data_ptr<double>()[k] = 0.5 * k;
         return x.matmul(c) + view.sum(1);
       }},
      {"captured_and_overwritten",
       [](const Tensor& x) {
         Tensor c = SmallModelWeight()[0].clone();
         const Tensor y = x + c;
         c.fill_(2);
         return y * c;
       }},
      {"resized",
       [](const Tensor& x) {
         Tensor y = x.clone();
         y.resize_({3, 2});
         return y.mul(2);
       }},
      {"set_to_other_memory",
       [](const Tensor& x) {
         Tensor y = x.exp();
         const Tensor alias = y.view({12});
         y.set_(x.sin());
         return y + alias.view({2, 6});
       }},
      {"transposed_in_place",
       [](const Tensor& x) {
         Tensor y = x * 2;
         const Tensor before = y.view({2, 6});
         y.t_();
         y.mul_(3);
         return before.mm(y);
       }},
      {"alias_behind_the_dispatcher",
       [](const Tensor& x) {
         Tensor y = x * 2;
         Tensor data = y.tensor_data();
         data.add_(1);
         return y.relu();
       }},
      {"as_strided_of_a_slice",
       [](const Tensor& x) {
         const Tensor y = (x * 2).slice(0, 1, 2);
         return y.as_strided({2, 2}, {3, 1}, 1).sin();
       }},
      {"complex_views",
       [](const Tensor& x) {
         Tensor z = at::view_as_complex(x.clone().view({2, 3, 2}));
         z.conj().mul_(2);
         return at::view_as_real((z.conj() * z + at::imag(z.conj())).resolve_conj());
       }},
      {"lists_with_gaps",
       [](const Tensor& x) {
         const c10::List<c10::optional<Tensor>> at_columns({c10::nullopt, at::tensor({0, 2}, at::kLong)});
         return x.index(at_columns) + at::stack(at::split(x, 3, 1), 0).sum(0).slice(1, 0, 2);
       }},
      {"written_lists",
       [](const Tensor& x) {
         std::vector<Tensor> parts = x.clone().split(2, 1);
         at::_foreach_mul_(parts, 3.0);
         return at::cat(parts, 0);
       }},
      {"several_outs",
       [](const Tensor& x) {
         Tensor values = at::empty({0}, x.options());
         Tensor indices = at::empty({0}, x.options().dtype(at::kLong));
         at::max_out(values, indices, x, 1);
         return values * indices;
       }},
      {"data_dependent_sizes",
       [](const Tensor& x) {
         const Tensor rows = (x > 0).nonzero().select(1, 1);
         return x.masked_select(x > 0).mul(rows) + x.index({x > 0});
       }},
      {"random_numbers",
       [](const Tensor& x) {
         Tensor noise = at::rand_like(x);
         noise.bernoulli_(0.5);
         return at::dropout(x + at::randn({2, 6}, x.options()), 0.3, true) * noise;
       }},
      {"long_loop",
       [](const Tensor& x) {
         Tensor state = at::zeros({6}, x.options());
         for (int k = 0; k < 300; ++k) state = at::tanh(state + x[k % 2]);
         return state;
       }},
      {"batch_norm_in_training",
       [](const Tensor& x) {
         Tensor mean = at::zeros({6}, x.options());
         Tensor var = at::ones({6}, x.options());
         const Tensor y = at::batch_norm(x, {}, {}, mean, var, true, 0.1, 1e-5, false);
         return y + mean + var;
       }},
      {"undefined_tensors", [](const Tensor& x) { return at::linear(x, SmallModelWeight(), Tensor()); }},
      {"inner_dtype",
       [](const Tensor& x) { return x.to(at::kFloat).round().to(at::kLong).flatten().bincount().sum() + x; }},
  };
}

class Replayed : public testing::TestWithParam<SmallModel> {};

TEST_P(Replayed, GivesTheSameBits) {
  const auto run = [&](const Tensor& x) {
    at::manual_seed(5);
    return GetParam().run(x);
  };
  const Tensor x = Random({2, 6}, 1).abs_();
  const Tensor expected = run(x.clone());
  const Recording recording = RecordFunction(run, x.clone());
  EXPECT_TRUE(Same(recording.output.toTensor(), expected));

  // Twice, because the first replay must not leave traces in parameters and constants.
  const Replay replay(recording.program);
  for (int round = 0; round < 2; ++round) {
    at::manual_seed(5);
    const Tensor input = x.clone();
    const Tensor untouched = x.clone();
    const ReplayResult result = replay.Run({input});
    EXPECT_TRUE(Same(result.output.toTensor(), expected));
    run(untouched);
    EXPECT_TRUE(Same(input, untouched)) << "the model writes its input otherwise";
  }
}

TEST_P(Replayed, GivesEveryValueAsTheModelMadeIt) {
  at::manual_seed(5);
  const Tensor x = Random({2, 6}, 1).abs_();
  const Recording recording = RecordFunction(GetParam().run, x.clone());
  // The values of one replay, recorded by a second recording of that replay's own run.
  ReplayOptions options;
  options.every_value = true;
  at::manual_seed(5);
  const ReplayResult first = Replay(recording.program).Run({x.clone()}, options);
  EXPECT_EQ(first.values.size(), recording.program->values.size());
  std::set<std::string> names;
  for (size_t v = 0; v < first.values.size(); ++v) {
    const RecordedValue& value = recording.program->values[v];
    EXPECT_TRUE(names.insert(first.values[v].first).second) << first.values[v].first << " occurs twice";
    EXPECT_FALSE(value.name.empty());
    EXPECT_EQ(first.values[v].second.sizes(), at::IntArrayRef(value.geometry.sizes)) << value.name;
    EXPECT_EQ(first.values[v].second.scalar_type(), value.dtype) << value.name;
  }
  at::manual_seed(5);
  const Recording again = Record(*FromProgram(recording.program), {x.clone()});
  EXPECT_EQ(Lines(*again.program), Lines(*recording.program));
}

INSTANTIATE_TEST_SUITE_P(Small, Replayed, testing::ValuesIn(SmallModels()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Odd, Replayed, testing::ValuesIn(OddModels()),
                         [](const auto& info) { return info.param.name; });

// ---- TorchScript

struct ScriptCase {
  std::string model;
  std::vector<std::string> inputs;
};
void PrintTo(const ScriptCase& script, std::ostream* out) { *out << script.model; }

class ReplayedScripts : public testing::TestWithParam<ScriptCase> {
 protected:
  ReplayedScripts() : model_(LoadTorchScript(Folder() + GetParam().model + ".pt")) {
    const TensorFile file = ReadTensorFile(Folder() + GetParam().model + ".safetensors");
    for (const std::string& name : GetParam().inputs) inputs_.push_back(file.Find(name)->clone());
  }
  static std::string Folder() { return "tests/conformance/models/"; }
  std::vector<c10::IValue> Inputs() const {
    std::vector<c10::IValue> copies;
    for (const Tensor& input : inputs_) copies.emplace_back(input.clone());
    return copies;
  }

  std::shared_ptr<Model> model_;
  std::vector<Tensor> inputs_;
};

TEST_P(ReplayedScripts, GiveTheSameBits) {
  const c10::IValue expected = model_->Run(Inputs());
  const Recording recording = Record(*model_, Inputs());
  ExpectSame(recording.output, expected);
  ExpectSame(Replay(recording.program).Run(Inputs()).output, expected);
  for (const RecordedStorage& storage : recording.program->storages) {
    EXPECT_EQ(storage.copied, storage.initial.defined() && !storage.writers.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Conformance, ReplayedScripts,
                         testing::Values(ScriptCase{"awkward", {"same_branch"}}, ScriptCase{"cnn", {"image"}},
                                         ScriptCase{"gru", {"sequence"}}, ScriptCase{"lstm", {"sequence"}},
                                         ScriptCase{"mixed", {"table", "image", "tokens"}},
                                         ScriptCase{"mlp", {"table"}}, ScriptCase{"nested", {"table"}},
                                         ScriptCase{"relu_network", {"image"}},
                                         ScriptCase{"transformer_decoder", {"tokens", "memory"}},
                                         ScriptCase{"transformer_encoder", {"tokens"}}, ScriptCase{"unet", {"image"}}),
                         [](const auto& info) { return info.param.model; });

}  // namespace
}  // namespace addend
