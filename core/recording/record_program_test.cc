// Recording and replay agree bit for bit, on models that write, alias, branch, resize and nest.
#include "core/recording/record_program.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/record_function.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/StorageImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/base/error_testing.h"
#include "core/linearize/small_models.h"
#include "core/model/program_model.h"
#include "core/model/script_testing.h"
#include "core/model/torchscript.h"
#include "core/program/program_file.h"
#include "core/program/recorder.h"
#include "core/program/replay.h"
#include "core/program/structure.h"
#include "core/program/tensor_io.h"
#include "core/run/compute_dtype.h"
#include "third_party/torch/version.h"

namespace addend {
namespace {

using at::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

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
         Tensor c = Weight()[0].clone();
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
      {"undefined_tensors", [](const Tensor& x) { return at::linear(x, Weight(), Tensor()); }},
      // LibTorch 2 multiplies in another order where the weight asks for gradients and the input is not contiguous.
      {"weights_that_ask_for_gradients",
       [](const Tensor& x) {
         const c10::AutoGradMode no_grad(false);
         return at::linear(x.expand({50, 2, 6}).transpose(0, 1), Weight().clone().requires_grad_());
       }},
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
  at::manual_seed(5);
  ReplayOptions out_of_place;
  out_of_place.out_of_place = true;
  const Tensor input = x.clone();
  EXPECT_TRUE(Same(replay.Run({input}, out_of_place).output.toTensor(), expected));
  EXPECT_TRUE(Same(input, x));
}

TEST_P(Replayed, GivesTheSameBitsFromAFile) {
  const Tensor x = Random({2, 6}, 1).abs_();
  at::manual_seed(5);
  const Recording recording = RecordFunction(GetParam().run, x.clone());
  const EncodedProgram encoded = EncodeProgram(*recording.program);
  const auto loaded = std::make_shared<const RecordedProgram>(DecodeProgram(encoded, "program"));
  EXPECT_EQ(Lines(*loaded), Lines(*recording.program));
  at::manual_seed(5);
  EXPECT_TRUE(Same(Replay(loaded).Run({x.clone()}).output.toTensor(), recording.output.toTensor()));
  const EncodedProgram again = EncodeProgram(*loaded);
  EXPECT_EQ(again.graph, encoded.graph);
  EXPECT_EQ(again.weights, encoded.weights);
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

using ReplayedScripts = ScriptTest;

TEST_P(ReplayedScripts, GiveTheSameBits) {
  const c10::IValue expected = model_->Run(Inputs());
  const Recording recording = Record(*model_, Inputs());
  ExpectSame(recording.output, expected);
  ExpectSame(Replay(recording.program).Run(Inputs()).output, expected);
  const std::string folder = testing::TempDir() + "/program_" + GetParam().model;
  SaveProgram(*recording.program, folder);
  const auto loaded = std::make_shared<const RecordedProgram>(LoadProgram(folder));
  ExpectSame(Replay(loaded).Run(Inputs()).output, expected);
  for (size_t c = 0; c < loaded->calls.size(); ++c) {
    EXPECT_EQ(PositionOf(*loaded, static_cast<int>(c)).Describe(),
              PositionOf(*recording.program, static_cast<int>(c)).Describe());
  }
  for (const RecordedStorage& storage : recording.program->storages) {
    EXPECT_EQ(storage.copied, storage.initial.defined() && !storage.writers.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Conformance, ReplayedScripts, testing::ValuesIn(ScriptCases()),
                         [](const auto& info) { return info.param.model; });

// ---- what is recorded

TEST(Record, NamesInputsParametersConstantsAndResults) {
  AnyModel model([&](const std::vector<c10::IValue>& in) {
    const auto pair = in[1].toTuple();
    const Tensor y = at::linear(in[0].toTensor(), model.named[0].second, model.named[1].second);
    model.named[2].second.add_(1);
    return y + pair->elements()[0].toTensor() + at::tensor({1.0, 2.0}, at::kDouble) + model.named[2].second;
  });
  model.named = {{"fc.weight", Random({2, 3}, 1)}, {"fc.bias", Random({2}, 2)}, {"steps", at::zeros({2}, at::kDouble)}};
  model.buffers = {"steps"};
  RecordOptions options;
  options.input_names = {"x"};
  const auto nested = c10::ivalue::Tuple::create({Random({2}, 3), 4});
  const Recording recording = Record(model, {Random({5, 3}, 4), nested}, options);
  const RecordedProgram& program = *recording.program;
  std::map<std::string, ValueKind> kinds;
  for (const RecordedValue& value : program.values) kinds[value.name] = value.kind;
  EXPECT_EQ(kinds.at("x"), ValueKind::kInput);
  EXPECT_EQ(kinds.at("input_1"), ValueKind::kInput);
  EXPECT_EQ(kinds.at("fc.weight"), ValueKind::kParameter);
  EXPECT_EQ(kinds.at("fc.bias"), ValueKind::kParameter);
  EXPECT_EQ(kinds.at("steps"), ValueKind::kBuffer);
  EXPECT_EQ(kinds.at("linear"), ValueKind::kResult);
  EXPECT_EQ(kinds.at("add_2"), ValueKind::kResult);
  EXPECT_EQ(program.calls[0].op.schema().arguments()[program.calls[0].uses[2].argument].name(), "bias");
  EXPECT_EQ(PositionOf(program, 0).module_path, "fc");
  // The model's own memory, but for what it overwrites.
  const auto initial = [&](const std::string& name) {
    return program.storages[program.values[FindValue(program, name)].storage];
  };
  EXPECT_EQ(initial("fc.weight").initial.data_ptr(), model.named[0].second.data_ptr());
  EXPECT_FALSE(initial("fc.weight").copied);
  EXPECT_TRUE(initial("steps").copied);
  EXPECT_TRUE(at::equal(initial("steps").initial, at::zeros({2}, at::kDouble)));
}

// Counts what copies elements, the recorder's own copies included.
class CopyCounter {
 public:
  CopyCounter() {
    Count() = 0;
    handle_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback([](const at::RecordFunction& call) -> std::unique_ptr<at::ObserverContext> {
          static const auto& names = *new std::set<std::string>{"aten::clone", "aten::_to_copy"};
          Count() += names.count(call.name());
          return nullptr;
        }).scopes({at::RecordScope::FUNCTION}));
  }
  ~CopyCounter() { at::removeCallback(handle_); }
  CopyCounter(const CopyCounter&) = delete;
  CopyCounter& operator=(const CopyCounter&) = delete;
  static size_t& Count() {
    thread_local size_t count = 0;
    return count;
  }

 private:
  at::CallbackHandle handle_;
};

TEST(Replay, HasParametersThatAskForGradientsAsTheModelsDo) {
  const Tensor weight = Random({3, 6}, 2).requires_grad_();
  const Tensor counts = at::arange(6);
  AnyModel model([&](const std::vector<c10::IValue>& in) -> c10::IValue {
    const c10::AutoGradMode grad(true);
    return at::linear(in[0].toTensor() + counts, weight);
  });
  model.named = {{"weight", weight}, {"counts", counts}};
  model.buffers = {"counts"};
  const Tensor x = Random({2, 6}, 1);
  const Recording recording = Record(model, {x});
  const EncodedProgram encoded = EncodeProgram(*recording.program);
  const auto loaded = std::make_shared<const RecordedProgram>(DecodeProgram(encoded, "program"));
  for (const auto& program : {recording.program, loaded}) {
    ReplayOptions options;
    options.every_value = true;
    const ReplayResult result = Replay(program).Run({x}, options);
    EXPECT_TRUE(result.output.toTensor().requires_grad());
    for (const auto& [name, value] : result.values) EXPECT_FALSE(value.requires_grad()) << name;
  }
}

TEST(Record, CopiesOnlyWhatIsOverwrittenLater) {
  const Tensor weight = Random({8, 8}, 1);
  const Tensor state = Random({8}, 2);
  const Tensor outside = Random({8}, 3);
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> made;
  const auto model = FromFunction(
      [&](const std::vector<Tensor>& in) {
        const Tensor y = in[0].matmul(weight);
        made.emplace_back(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(y.storage().unsafeGetStorageImpl()));
        in[0].add_(1);
        state.mul_(0.5).add_(1);
        return y.sin().mul_(2) + state + outside;
      },
      {{"weight", weight}, {"state", state}}, {}, {"state"});
  const Tensor x = Random({4, 8}, 4);
  size_t plain = 0;
  {
    const CopyCounter counter;
    model->Run({x.clone()});
    plain = CopyCounter::Count();
  }
  size_t recorded = 0;
  Recording recording;
  {
    const CopyCounter counter;
    recording = Record(*model, {x.clone()});
    recorded = CopyCounter::Count();
  }
  EXPECT_EQ(recorded, plain + 1) << "of the state, before it is overwritten first";
  const RecordedProgram& program = *recording.program;
  size_t kept = 0;
  for (const RecordedStorage& storage : program.storages) {
    kept += storage.initial.defined() ? 1 : 0;
    const bool is_state = program.values[storage.value].name == "state";
    EXPECT_EQ(storage.copied, is_state);
    const bool is_weight = program.values[storage.value].name == "weight";
    EXPECT_EQ(storage.initial.defined() && storage.initial.data_ptr() == weight.data_ptr(), is_weight);
  }
  EXPECT_EQ(kept, 3);
  // Memory that calls made lives no longer than the model wants.
  for (const auto& storage : made) EXPECT_TRUE(storage.expired());
}

// A replay hands TorchScript values of the types that TorchScript declares.
TEST(PutTogether, ContainersOfTuplesAreThoseThatTorchScriptTakes) {
  torch::jit::Module module("Network");
  module.define(R"(
def forward(self, steps: List[Tuple[Tensor, int]], named: Dict[str, Tuple[Tensor, Tensor]]):
    total = named["a"][0] + named["b"][1]
    for step, times in steps:
        total = total + step * times
    return total
)");
  const Tensor two = Random({2}, 1);
  const Tensor one = Random({1}, 2);
  const std::vector<Tensor> tensors = {two, one};
  const auto tuple = [](std::vector<Structure> elements) {
    Structure structure;
    structure.kind = Structure::Kind::kTuple;
    structure.elements = std::move(elements);
    return structure;
  };
  const auto tensor = [](int number) {
    Structure structure;
    structure.kind = Structure::Kind::kTensor;
    structure.tensor = number;
    return structure;
  };
  const auto number = [](int64_t value) {
    Structure structure;
    structure.plain = value;
    return structure;
  };
  Structure steps;
  steps.kind = Structure::Kind::kList;
  steps.elements = {tuple({tensor(0), number(3)}), tuple({tensor(1), number(-1)})};
  Structure named;
  named.kind = Structure::Kind::kDict;
  named.keys = {"a", "b"};
  named.elements = {tuple({tensor(0), tensor(1)}), tuple({tensor(1), tensor(0)})};
  const auto given = [&](int k) { return tensors[k]; };
  const Tensor found = module.forward({PutTogether(steps, given), PutTogether(named, given)}).toTensor();
  EXPECT_TRUE(at::equal(found, two + two + two * 3 + one * -1));
}

TEST(Record, KeepsNestedOutputs) {
  AnyModel model([](const std::vector<c10::IValue>& in) {
    const c10::Dict<std::string, Tensor> given = c10::impl::toTypedDict<std::string, Tensor>(in[0].toGenericDict());
    c10::Dict<std::string, Tensor> named;
    named.insert("sum", given.at("a") + given.at("b"));
    named.insert("a", given.at("a"));
    c10::List<Tensor> list({given.at("a") * 2, given.at("b")});
    return c10::ivalue::Tuple::create({c10::IValue(named), c10::IValue(list), 3, std::string("text"), c10::IValue()});
  });
  c10::Dict<std::string, Tensor> input;
  input.insert("a", Random({2}, 1));
  input.insert("b", Random({2}, 2));
  const Recording recording = Record(model, {input});
  EXPECT_EQ(DescribeStructure(recording.program->output),
            "({\"sum\": Tensor, \"a\": Tensor}, [Tensor, Tensor], 3, \"text\", None)");
  const auto loaded = std::make_shared<const RecordedProgram>(DecodeProgram(EncodeProgram(*recording.program), "p"));
  const c10::IValue output = Replay(loaded).Run({input}).output;
  ExpectSame(output, recording.output);
  const std::vector<c10::IValue> elements = output.toTupleRef().elements().vec();
  EXPECT_TRUE(elements[1].isTensorList());
  EXPECT_EQ(elements[2].toInt(), 3);
  EXPECT_EQ(elements[3].toStringRef(), "text");
  EXPECT_TRUE(elements[4].isNone());

  c10::Dict<std::string, Tensor> other;
  other.insert("a", Random({2}, 1));
  other.insert("c", Random({2}, 2));
  EXPECT_THAT(MessageOf([&] { Replay(loaded).Run({other}); }), HasSubstr("has the key \"c\", not \"b\""));
}

TEST(Record, TellsWhichOperatorsDrawAndWhichAreViews) {
  const Recording recording = RecordFunction(
      [](const Tensor& x) { return at::dropout(at::dropout(x.t(), 0.5, false), 0.5, true); }, Random({2, 6}, 1));
  const auto& calls = recording.program->calls;
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_TRUE(calls[0].is_view);
  EXPECT_FALSE(calls[0].random);
  EXPECT_FALSE(calls[1].random);
  EXPECT_TRUE(calls[2].random);
  EXPECT_FALSE(calls[2].is_view);
}

// A write through a view makes the next reader of the whole depend on it.
TEST(Record, DependenciesSeeWritesThroughViews) {
  const Recording recording = RecordFunction(
      [](const Tensor& x) {
        Tensor y = x.clone();             // 0
        y.select(0, 1).mul_(2);           // 1, 2
        return y.sin() + y.select(0, 0);  // 3, 4, 5
      },
      Random({2, 6}, 1));
  EXPECT_THAT(Dependencies(*recording.program, 2), ElementsAre(1));
  EXPECT_THAT(Dependencies(*recording.program, 3), ElementsAre(0, 2));
  EXPECT_THAT(Dependencies(*recording.program, 4), ElementsAre(0, 2));
}

// No tensor that the model drops is kept alive.
TEST(Record, HoldsNoIntermediates) {
  c10::weak_intrusive_ptr<c10::StorageImpl> weak(
      c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(at::empty({1}).storage().unsafeGetStorageImpl()));
  bool gone = false;
  RecordFunction(
      [&](const Tensor& x) {
        {
          const Tensor inner = x.exp();
          weak = c10::weak_intrusive_ptr<c10::StorageImpl>(
              c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(inner.storage().unsafeGetStorageImpl()));
        }
        gone = weak.expired();
        return x * 2;
      },
      Random({2, 6}, 1));
  EXPECT_TRUE(gone);
}

TEST(Record, RefusesWhatItCannotRecord) {
  const Tensor x = Random({2, 6}, 1);
  EXPECT_THAT(MessageOf([&] { RecordFunction([](const Tensor& t) { return t.to_sparse().to_dense(); }, x); }),
              HasSubstr("not dense"));
  EXPECT_THAT(MessageOf([&] { RecordFunction([](const Tensor& t) { return t.mm(t); }, x); }),
              testing::AllOf(HasSubstr("the model fails on an input f64[2, 6]: "),
                             HasSubstr("mat1 and mat2 shapes cannot be multiplied")));
}

TEST(Record, MetaModelsHaveNoValues) {
  const Tensor w = at::empty({4, 6}, at::TensorOptions().device(at::kMeta));
  const Tensor x = at::empty({2, 6}, at::TensorOptions().device(at::kMeta));
  const Recording recording =
      Record(*FromFunction([&](const std::vector<Tensor>& in) { return at::linear(in[0], w).sigmoid(); }), {x});
  EXPECT_THAT(Lines(*recording.program),
              ElementsAre("linear(f32[2, 6], f32[4, 6], None) -> f32[2, 4]", "sigmoid(f32[2, 4]) -> f32[2, 4]"));
  for (const RecordedStorage& storage : recording.program->storages) EXPECT_FALSE(storage.initial.defined());
  const auto loaded = std::make_shared<const RecordedProgram>(DecodeProgram(EncodeProgram(*recording.program), "p"));
  EXPECT_EQ(Replay(loaded).Run({x}).output.toTensor().sizes(), at::IntArrayRef({2, 4}));
}

// ---- guards

std::string ReplayError(const std::function<Tensor(const Tensor&)>& function, const Tensor& recorded,
                        const Tensor& given, const ReplayOptions& options = {}) {
  const Recording recording = RecordFunction(function, recorded.clone());
  return MessageOf([&] { Replay(recording.program).Run({given.clone()}, options); });
}

TEST(Guards, StopOnTheBranchNotTaken) {
  const auto branch = [](const Tensor& x) { return at::is_nonzero(x.sum().gt(0)) ? x.exp() : x.neg(); };
  const Tensor up = at::ones({2, 3}, at::kDouble);
  EXPECT_EQ(ReplayError(branch, up, up * 2), "(no error)");
  const std::string message = ReplayError(branch, up, -up);
  EXPECT_THAT(message, HasSubstr("a guard does not hold: the operator gives False; recorded was True"));
  EXPECT_THAT(message, HasSubstr("aten::is_nonzero"));
  EXPECT_THAT(message, HasSubstr("op #2"));
  ReplayOptions off;
  off.guards = false;
  EXPECT_EQ(ReplayError(branch, up, -up, off), "(no error)");
}

// Nobody asked for another dtype: the result would be computed otherwise than the model computed it.
TEST(Replay, TakesWiderDtypesOnlyWhereTheyAreAskedFor) {
  const at::NoGradGuard no_grad;
  // A new tensor of the default dtype, which may be another one when the program is replayed.
  const auto function = [](const Tensor& x) { return x + at::ones({3}); };
  const Tensor x = Random({2, 3}, 1, at::kFloat);
  const Recording recording = RecordFunction(function, x);
  const Tensor expected = recording.output.toTensor();
  const Replay replay(recording.program);
  ReplayOptions wider;
  wider.wider = true;
  const auto model = FromProgram(recording.program);
  const caffe2::TypeMeta before = c10::get_default_dtype();
  c10::set_default_dtype(caffe2::TypeMeta::Make<double>());
  const std::string refused = MessageOf([&] { replay.Run({x}); });
  const std::string of_model = MessageOf([&] { model->Run({x}); });
  const std::string taken = MessageOf([&] { replay.Run({x}, wider); });
  c10::set_default_dtype(before);
  EXPECT_THAT(refused, HasSubstr("the operator gives f64[3]; recorded was f32[3]"));
  EXPECT_THAT(of_model, HasSubstr("the operator gives f64[3]; recorded was f32[3]"));
  EXPECT_EQ(taken, "(no error)");
  // In a run that computes in another dtype, values are wider.
  {
    const ComputeScope scope(ComputeDtype::kFloat64, {});
    EXPECT_EQ(model->Run({x}).toTensor().scalar_type(), at::kDouble);
  }
  EXPECT_TRUE(Same(model->Run({x}).toTensor(), expected));
}

TEST(Guards, StopOnNumbersThatBecameArguments) {
  const auto scaled = [](const Tensor& x) { return x * x.max().item<double>(); };
  const Tensor x = at::tensor({1.0, 4.0}, at::kDouble);
  EXPECT_EQ(ReplayError(scaled, x, x.flip({0})), "(no error)");
  EXPECT_THAT(ReplayError(scaled, x, x * 2), HasSubstr("gives 8.; recorded was 4."));
  ReplayOptions loose;
  loose.guard_tolerance = 0.01;
  EXPECT_EQ(ReplayError(scaled, x, x * 1.001, loose), "(no error)");
  EXPECT_THAT(ReplayError(scaled, x, x * 1.1, loose), HasSubstr("a guard does not hold"));
}

TEST(Guards, StopOnSizesThatDependOnElements) {
  const auto nonzero = [](const Tensor& x) { return x.nonzero(); };
  const Tensor x = at::tensor({1.0, 0.0, 4.0}, at::kDouble);
  EXPECT_EQ(ReplayError(nonzero, x, x.flip({0})), "(no error)");
  EXPECT_THAT(ReplayError(nonzero, x, x + 1), HasSubstr("sizes [3, 1]; recorded were [2, 1]"));
  const auto masked = [](const Tensor& t) { return t.index({t > 1}); };
  EXPECT_THAT(ReplayError(masked, x, x + 1), HasSubstr("a guard does not hold"));
}

TEST(Guards, InputsThatDoNotFitAreAllNamed) {
  const Recording recording = Record(*FromFunction([](const std::vector<Tensor>& in) { return in[0] + in[1]; }),
                                     {Random({2, 3}, 1), Random({3}, 2)});
  const Replay replay(recording.program);
  const std::string message = MessageOf([&] { replay.Run({Random({2, 4}, 1), Random({3}, 2, at::kFloat)}); });
  EXPECT_THAT(message, HasSubstr("input_0 is f64[2, 4], recorded was f64[2, 3]"));
  EXPECT_THAT(message, HasSubstr("input_1 is f32[3], recorded was f64[3]"));
  EXPECT_THAT(MessageOf([&] { replay.Run({Random({2, 3}, 1)}); }), HasSubstr("takes 2 inputs, not 1"));
  EXPECT_THAT(MessageOf([&] { replay.Run({Random({2, 3}, 1), 3}); }), HasSubstr("is a plain value, not a tensor"));
  ReplayOptions options;
  options.values = {"nothing"};
  EXPECT_THAT(MessageOf([&] {
                replay.Run({Random({2, 3}, 1), Random({3}, 2)}, options);
              }),
              HasSubstr("no value called nothing"));
}

TEST(Guards, InputsThatShareMemoryKeepDoingSo) {
  const Tensor x = Random({3}, 1);
  const auto model = FromFunction([](const std::vector<Tensor>& in) {
    in[0].add_(1);
    return in[0] * in[1];
  });
  const Recording apart = Record(*model, {x.clone(), x.clone()});
  EXPECT_THAT(MessageOf([&] { Replay(apart.program).Run({x, x}); }), HasSubstr("share memory, which they did not"));
  const Tensor both = x.clone();
  const Recording shared = Record(*model, {both, both});
  const Tensor again = x.clone();
  EXPECT_TRUE(Same(Replay(shared.program).Run({again, again}).output.toTensor(), shared.output.toTensor()));
}

TEST(Values, AreThoseOfTheirTime) {
  const Tensor x = Random({4}, 5);
  const Recording recording = RecordFunction(
      [](const Tensor& t) {
        Tensor y = t * 2;
        return y.add_(1).relu_();
      },
      x);
  ReplayOptions options;
  options.values = {"mul", "add_", "relu_"};
  const ReplayResult result = Replay(recording.program).Run({x}, options);
  ASSERT_EQ(result.values.size(), 3u);
  EXPECT_TRUE(Same(result.values[0].second, x * 2));
  EXPECT_TRUE(Same(result.values[1].second, x * 2 + 1));
  EXPECT_TRUE(Same(result.values[2].second, (x * 2 + 1).relu()));
}

// ---- files

class Damaged : public testing::Test {
 protected:
  Damaged() {
    Weight();  // made before, not while it is recorded
    const Recording recording = RecordFunction(
        [](const Tensor& x) {
          Tensor y = at::cat({at::linear(x, Weight()), x}, 1);
          y.select(1, 0).add_(y.sum().item<double>());
          const auto both = y.max(1);
          return std::get<0>(both) + at::tensor({1.0, 2.0}, at::kDouble);
        },
        Random({2, 6}, 1));
    good_ = EncodeProgram(*recording.program);
  }
  // Either an Error or a program that can be encoded and, if it runs, throws nothing but exceptions.
  static void Survive(const EncodedProgram& encoded) {
    try {
      const auto program = std::make_shared<const RecordedProgram>(DecodeProgram(encoded, "damaged"));
      EncodeProgram(*program);
      Replay(program).Run({Random({2, 6}, 1)});
    } catch (const Error& e) {
      EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos) << e.what();
    } catch (const c10::Error&) {  // an operator refuses what it is given
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
  }
  std::string Why(const std::string& from, const std::string& to) const {
    EncodedProgram edited = good_;
    const size_t at = edited.graph.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    edited.graph.replace(at, from.size(), to);
    return MessageOf([&] { DecodeProgram(edited, "edited"); });
  }

  EncodedProgram good_;
};

TEST_F(Damaged, TruncatedFilesAreRefused) {
  for (size_t size = 0; size < good_.graph.size(); size += 97) {
    EncodedProgram cut = good_;
    cut.graph.resize(size);
    EXPECT_THAT(MessageOf([&] { DecodeProgram(cut, "cut"); }), HasSubstr("cut: "));
  }
  for (size_t size = 0; size < good_.weights.size(); size += 31) {
    EncodedProgram cut = good_;
    cut.weights.resize(size);
    EXPECT_NE(MessageOf([&] { DecodeProgram(cut, "cut"); }), "(no error)");
  }
}

TEST_F(Damaged, EveryByteChangedIsTakenOrRefused) {
  for (size_t at = 0; at < good_.graph.size(); at += 11) {
    for (const char byte : {'9', '"', '-', '\0'}) {
      EncodedProgram edited = good_;
      edited.graph[at] = byte;
      Survive(edited);
    }
  }
}

// Checksums cover every bit of a saved program: a flipped bit of a weight would be another model.
TEST_F(Damaged, EveryFlippedBitOfAFileIsSeen) {
  RequireChecksums(good_, "good");
  for (std::string EncodedProgram::*part : {&EncodedProgram::graph, &EncodedProgram::weights}) {
    for (size_t bit = 0; bit < 8 * (good_.*part).size(); bit += 7) {
      EncodedProgram damaged = good_;
      (damaged.*part)[bit / 8] = static_cast<char>((damaged.*part)[bit / 8] ^ (1 << bit % 8));
      try {
        RequireChecksums(damaged, "damaged");
      } catch (const Error&) {
        continue;
      }
      // It passes where what was hit is the name of a checksum, or the space behind the header: nothing that is read.
      const TensorFile whole = DecodeTensorFile(good_.weights, "whole");
      const TensorFile read = DecodeTensorFile(damaged.weights, "read");
      EXPECT_EQ(damaged.graph, good_.graph) << bit;
      ASSERT_EQ(read.tensors.size(), whole.tensors.size()) << bit;
      for (size_t k = 0; k < whole.tensors.size(); ++k) {
        EXPECT_EQ(read.tensors[k].first, whole.tensors[k].first) << bit;
        EXPECT_TRUE(read.tensors[k].second.equal(whole.tensors[k].second)) << bit;
      }
    }
  }
  // Files from before there were checksums.
  TensorFile weights = DecodeTensorFile(good_.weights, "weights");
  EXPECT_EQ(weights.metadata.size(), 2u);
  weights.metadata.clear();
  EncodedProgram old = good_;
  old.weights = EncodeSafetensors(weights);
  RequireChecksums(old, "old");
  EXPECT_EQ(WithChecksums(old.weights, old.graph), good_.weights);
}

TEST_F(Damaged, LoadingComparesChecksums) {
  const std::string folder = testing::TempDir() + "/checksums";
  SaveProgram(DecodeProgram(good_, "good"), folder);
  LoadProgram(folder);
  std::string weights = ReadFileWhole(folder + "/weights.safetensors");
  weights.back() = static_cast<char>(weights.back() ^ 1);
  WriteFileWhole(folder + "/weights.safetensors", weights);
  EXPECT_THAT(MessageOf([&] { LoadProgram(folder); }), HasSubstr("weights.safetensors is not as it was saved"));
  SaveProgram(DecodeProgram(good_, "good"), folder);
  std::string graph = ReadFileWhole(folder + "/program.json");
  const size_t at = graph.find("\"value\": 0");
  ASSERT_NE(at, std::string::npos);
  graph[at + 9] = '1';
  WriteFileWhole(folder + "/program.json", graph);
  EXPECT_THAT(MessageOf([&] { LoadProgram(folder); }), HasSubstr("program.json is not as it was saved"));
}

TEST_F(Damaged, SaysWhatIsWrong) {
  EXPECT_THAT(Why("\"version\": 1,", "\"version\": 2,"), HasSubstr("2 is not known; this library reads version 1"));
  EXPECT_THAT(Why("addend program", "something else"), HasSubstr("format is not \"addend program\""));
  EXPECT_THAT(Why("\"guards\":", "\"hints\": [], \"guards\":"), HasSubstr("has an unknown \"hints\""));
  EXPECT_THAT(Why("\"aten::linear\"", "\"aten::lineal\""),
              HasSubstr("aten::lineal, which this LibTorch does not have"));
  EXPECT_THAT(Why("\"aten::linear\"", "\"aten::from_file\""), HasSubstr("that is refused"));
  EXPECT_THAT(Why("\"weight\":", "\"weigth\":"), HasSubstr("calls[0].weight is missing"));
  EXPECT_THAT(Why("\"dtype\": \"f64\"", "\"dtype\": \"f65\""), HasSubstr("unknown dtype f65"));
  EXPECT_THAT(Why("\"kind\": \"input\"", "\"kind\": \"output\""), HasSubstr("unknown kind output"));
  EXPECT_THAT(Why("\"value\": 0", "\"value\": 99999"), HasSubstr("is not between"));
  EncodedProgram other = good_;
  other.weights = EncodeSafetensors({});
  EXPECT_THAT(MessageOf([&] { DecodeProgram(other, "other"); }), HasSubstr("names weights that are not there"));
  EXPECT_THAT(MessageOf([] { LoadProgram(testing::TempDir() + "/nowhere"); }), HasSubstr("nowhere"));
  const std::string own = absl::StrCat("\"libtorch\": \"", LibTorchVersion(), "\"");
  EXPECT_THAT(Why(own, "\"libtorch\": \"9 or so\""), HasSubstr("libtorch is no version"));
  EXPECT_THAT(Why(own, "\"libtorch\": 9"), HasSubstr("is no string"));
}

// ---- the LibTorch that it was recorded with

class OfAnotherLibTorch : public Damaged {
 protected:
  // The file as that version would have written it; "": as it was written before the key was there.
  EncodedProgram From(const std::string& version) const {
    EncodedProgram edited = good_;
    const std::string line = absl::StrCat(" \"libtorch\": \"", LibTorchVersion(), "\",\n");
    const size_t at = edited.graph.find(line);
    EXPECT_NE(at, std::string::npos);
    edited.graph.replace(at, line.size(), version.empty() ? "" : absl::StrCat(" \"libtorch\": \"", version, "\",\n"));
    return edited;
  }
  static std::vector<std::string> Notes(const EncodedProgram& encoded) {
    return FromProgram(std::make_shared<const RecordedProgram>(DecodeProgram(encoded, "p")))->Notes();
  }
};

TEST_F(OfAnotherLibTorch, ProgramsAreReadWithANote) {
  EXPECT_THAT(Notes(From("9.1.0+cu1")), ElementsAre(HasSubstr("recorded with LibTorch 9.1.0+cu1, and this is")));
  EXPECT_THAT(Notes(From("")), IsEmpty());
  EXPECT_THAT(Notes(good_), IsEmpty());
  const std::string own = LibTorchVersion();
  EXPECT_THAT(Notes(From(own.substr(0, own.rfind('.')) + ".99")), IsEmpty()) << "a patch is no other version";
  // A program keeps what it was recorded with, whoever saves it again.
  EXPECT_EQ(EncodeProgram(DecodeProgram(From("9.1.0"), "p")).graph, From("9.1.0").graph);
  EXPECT_EQ(EncodeProgram(DecodeProgram(From(""), "p")).graph, From("").graph);
}

TEST_F(OfAnotherLibTorch, OperatorsThatAreNotHereAreRefusedWithBothVersions) {
  EncodedProgram newer = From("9.1.0");
  const size_t at = newer.graph.find("\"aten::linear\"");
  newer.graph.replace(at, 14, "\"aten::lineal\"");
  const std::string message = MessageOf([&] { DecodeProgram(newer, "p"); });
  EXPECT_THAT(message, HasSubstr("aten::lineal, which this LibTorch does not have"));
  EXPECT_THAT(message, HasSubstr("recorded with LibTorch 9.1.0, and this is LibTorch "));
}

}  // namespace
}  // namespace addend
