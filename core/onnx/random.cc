// Random numbers, and the dropout of models that are not trained.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/onnx/context.h"
#include "core/onnx/families.h"
#include "core/onnx/operands.h"

namespace addend::onnx {
namespace {

using at::Tensor;
using Generator = c10::optional<at::Generator>;

// A generator of a node with a seed, so that each run draws the same; on the CPU, whatever the device is. Without a
// seed it is LibTorch's own.
Generator GeneratorOf(const Context& context) {
  if (!context.HasAttribute("seed")) return c10::nullopt;
  const double seed = context.FloatAttribute("seed");
  if (!(std::fabs(seed) < 0x1p62)) throw context.Invalid("the seed is too large");
  return at::make_generator<at::CPUGeneratorImpl>(static_cast<uint64_t>(static_cast<int64_t>(seed)));
}

// Options by which numbers are drawn that become those of `type`.
at::TensorOptions DrawOptions(const Context& context, at::ScalarType type, const Generator& generator) {
  const at::TensorOptions options = context.Options(type == at::kDouble ? at::kDouble : at::kFloat);
  return generator ? options.device(at::kCPU) : options;
}

Tensor Placed(const Context& context, const Tensor& drawn, at::ScalarType type) {
  const at::TensorOptions options = context.Options(type);
  return drawn.device() == options.device() ? InType(drawn, type) : drawn.to(options);
}

Tensor Normal(const Context& context, const std::vector<int64_t>& sizes, at::ScalarType type) {
  const Generator generator = GeneratorOf(context);
  const Tensor noise = at::randn(sizes, generator, DrawOptions(context, type, generator));
  const double mean = context.FloatAttribute("mean", 0), scale = context.FloatAttribute("scale", 1);
  return Placed(context, at::add(at::mul(noise, scale), mean), type);
}

Tensor Uniform(const Context& context, const std::vector<int64_t>& sizes, at::ScalarType type) {
  const Generator generator = GeneratorOf(context);
  const Tensor noise = at::rand(sizes, generator, DrawOptions(context, type, generator));
  const double low = context.FloatAttribute("low", 0), high = context.FloatAttribute("high", 1);
  return Placed(context, at::add(at::mul(noise, high - low), low), type);
}

// Draws of sizes that an attribute says.
template <Tensor (*draw)(const Context&, const std::vector<int64_t>&, at::ScalarType)>
Results Drawn(const Context& context) {
  if (!context.HasAttribute("shape")) throw context.Invalid("the attribute shape is missing");
  return draw(context, context.IntsAttribute("shape"), context.TypeAttribute("dtype", DataType::kFloat));
}

at::ScalarType TypeLike(const Context& context, const Tensor& x) {
  return context.HasAttribute("dtype") ? context.TypeAttribute("dtype") : x.scalar_type();
}

// Draws of another tensor's sizes.
template <Tensor (*draw)(const Context&, const std::vector<int64_t>&, at::ScalarType)>
Results DrawnLike(const Context& context) {
  const Tensor x = context.Tensor(0);
  return draw(context, x.sizes().vec(), TypeLike(context, x));
}

Results Bernoulli(const Context& context) {
  const Tensor x = context.Tensor(0);
  const Generator generator = GeneratorOf(context);
  const Tensor chances = generator ? x.cpu() : x;
  return Placed(context, at::bernoulli(chances, generator), TypeLike(context, x));
}

// Draws from logarithms of chances that need not add up to 1.
Results Multinomial(const Context& context) {
  const Generator generator = GeneratorOf(context);
  const Tensor chances = at::softmax(InType(context.Tensor(0), at::kDouble), -1);
  const Tensor drawn = at::multinomial(generator ? chances.cpu() : chances, context.IntAttribute("sample_size", 1),
                                       /*replacement=*/true, generator);
  return Placed(context, drawn, context.TypeAttribute("dtype", DataType::kInt32));
}

// ------------------------------------------------------------------------------------------------------------- Dropout

// Whether the node drops numbers: in training only.
bool Drops(const Context& context) {
  if (context.version() < 7) {
    return !context.FlagAttribute("is_test", false) && context.FloatAttribute("ratio", 0.5) != 0;
  }
  return context.version() >= 12 && context.Has(2) && context.Holds(context.Input(2)) && context.Real(1, 0.5) != 0;
}

Results Dropout(const Context& context) {
  if (Drops(context)) {
    throw context.Refused("it drops numbers at random, as in training; export the model for inference");
  }
  std::vector<Datum> results{context.Input(0)};
  if (!context.Wants(1)) return results;
  const Tensor x = context.Tensor(0);
  // The mask of elements that stay. Before version 10 it has the type of the input.
  const Tensor mask = at::ones_like(x, x.options().dtype(context.version() < 10 ? x.scalar_type() : at::kBool));
  const Descent descent = std::min(context.Input(0).descent, Descent::kSizes);
  results.push_back(context.is_known() ? Datum::Known(mask, descent) : Datum::Of(mask, descent));
  return results;
}

void AddRandom(OperatorTable& table, const char* name, int64_t since, OperatorFunction function, size_t num_inputs,
               std::vector<std::string> attributes) {
  attributes.insert(attributes.end(), {"dtype", "seed"});
  table.Add(name, since, function)
      .Inputs(num_inputs)
      .Attributes(std::move(attributes))
      .Known(KnownIf::kNever)
      .Note("numbers are drawn at random; other runtimes draw other ones");
}

}  // namespace

void RegisterRandom(OperatorTable& table) {
  AddRandom(table, "RandomNormal", 1, Drawn<Normal>, 0, {"mean", "scale", "shape"});
  AddRandom(table, "RandomUniform", 1, Drawn<Uniform>, 0, {"low", "high", "shape"});
  AddRandom(table, "RandomNormalLike", 1, DrawnLike<Normal>, 1, {"mean", "scale"});
  AddRandom(table, "RandomUniformLike", 1, DrawnLike<Uniform>, 1, {"low", "high"});
  AddRandom(table, "Bernoulli", 15, Bernoulli, 1, {});
  AddRandom(table, "Multinomial", 7, Multinomial, 1, {"sample_size"});
  table.Add("Dropout", 1, Dropout).Attributes({"consumed_inputs", "is_test", "ratio"});
  table.Add("Dropout", 7, Dropout).Attributes({"ratio"});
  table.Add("Dropout", 12, Dropout).Inputs(1, 3).Attributes({"seed"});
}

}  // namespace addend::onnx
