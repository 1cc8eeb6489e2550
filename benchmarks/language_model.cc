// Memory and time that an attribution of a language model takes beside the model, within limits of memory. The model
// has the shape of a Llama and random weights: only its size matters here.
//   language_model [--layers=N] [--width=N] [--heads=N] [--kv=N] [--inner=N] [--tokens=N] [--limit=MB]... [--eager]
//                  [--continuation=N] [--bfloat16] [--float32]
// For each limit (0: none) one line: seconds of a plain forward, the fastest of three; forwards that the attribution
// costs; megabytes that it takes at its peak over those that the process had before; the recovery error. Without
// arguments: a small one.
// With --continuation the last N ids are the continuation of those before: the log-probability of its first id is
// explained, then that of all of them together, then each for itself in one run. With --bfloat16 parameters and what
// the model computes are of that type; with --float32 beside it, the attribution computes in float32.
#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <malloc.h>
#include <torch/utils.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/explain/attribute.h"
#include "core/intercept/operator.h"

namespace {

struct Shape {
  int64_t layers = 4;
  int64_t width = 256;
  int64_t heads = 8;
  int64_t kv = 8;
  int64_t inner = 704;
  int64_t tokens = 256;
  int64_t words = 2000;
  int64_t continuation = 0;
  bool eager = false;  // attention written out, with a mask of large negative numbers
  at::ScalarType dtype = at::kFloat;
  addend::ComputeDtype compute = addend::ComputeDtype::kModel;
};

at::Tensor Weight(int64_t from, int64_t to, at::ScalarType dtype) {
  return (at::randn({to, from}) / std::sqrt(static_cast<double>(from))).to(dtype);
}

struct Layer {
  at::Tensor query, key, value, output, gate, up, down, before, between;
};

class Model {
 public:
  explicit Model(const Shape& shape) : shape_(shape) {
    const int64_t own = shape.width / shape.heads * shape.kv;
    const auto weight = [&](int64_t from, int64_t to) { return Weight(from, to, shape.dtype); };
    const auto ones = [&] { return at::ones({shape.width}, shape.dtype); };
    words_ = (at::randn({shape.words, shape.width}) * 0.02).to(shape.dtype);
    for (int64_t k = 0; k < shape.layers; ++k) {
      layers_.push_back({weight(shape.width, shape.width), weight(shape.width, own), weight(shape.width, own),
                         weight(shape.width, shape.width), weight(shape.width, shape.inner),
                         weight(shape.width, shape.inner), weight(shape.inner, shape.width), ones(), ones()});
    }
    norm_ = ones();
    head_ = weight(shape.width, shape.words);
  }

  at::Tensor operator()(const at::Tensor& ids) const {
    at::Tensor h = at::embedding(words_, ids);
    const int64_t size = shape_.width / shape_.heads;
    const at::Tensor steps = at::arange(ids.size(1), at::kFloat);
    const at::Tensor rates = at::pow(10000.0, at::arange(0, size, 2, at::kFloat) / -static_cast<double>(size));
    const at::Tensor angles = at::outer(steps, rates);
    const at::Tensor both = at::cat({angles, angles}, -1);
    const at::Tensor cos = both.cos().to(shape_.dtype);
    const at::Tensor sin = both.sin().to(shape_.dtype);
    for (const Layer& layer : layers_) {
      h = h + Attend(layer, Norm(h, layer.before), cos, sin);
      h = h + FeedForward(layer, Norm(h, layer.between));
    }
    // The scores of an id are those of the position before it.
    const int64_t first = ids.size(1) - 1 - shape_.continuation;
    return at::matmul(Norm(h.narrow(1, first, std::max<int64_t>(shape_.continuation, 1)), norm_), head_.t());
  }

 private:
  static at::Tensor Norm(const at::Tensor& x, const at::Tensor& weight) {
    const at::Tensor wide = x.to(at::kFloat);
    return weight * (wide * at::rsqrt(wide.pow(2).mean(-1, /*keepdim=*/true) + 1e-6)).to(weight.scalar_type());
  }
  static at::Tensor FeedForward(const Layer& layer, const at::Tensor& x) {
    const at::Tensor gate = at::silu(at::matmul(x, layer.gate.t()));
    return at::matmul(gate * at::matmul(x, layer.up.t()), layer.down.t());
  }
  at::Tensor Split(const at::Tensor& x, int64_t heads) const {
    return x.view({x.size(0), x.size(1), heads, shape_.width / shape_.heads}).transpose(1, 2);
  }
  static at::Tensor Rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
    const int64_t half = x.size(-1) / 2;
    const at::Tensor turned = at::cat({-x.narrow(-1, half, half), x.narrow(-1, 0, half)}, -1);
    return x * cos + turned * sin;
  }
  at::Tensor Repeat(const at::Tensor& x) const {
    if (shape_.kv == shape_.heads) return x;
    const int64_t times = shape_.heads / shape_.kv;
    return x.unsqueeze(2)
        .expand({x.size(0), shape_.kv, times, x.size(2), x.size(3)})
        .reshape({x.size(0), shape_.heads, x.size(2), x.size(3)});
  }
  at::Tensor Attend(const Layer& layer, const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) const {
    const at::Tensor q = Rotate(Split(at::matmul(x, layer.query.t()), shape_.heads), cos, sin);
    const at::Tensor k = Repeat(Rotate(Split(at::matmul(x, layer.key.t()), shape_.kv), cos, sin));
    const at::Tensor v = Repeat(Split(at::matmul(x, layer.value.t()), shape_.kv));
    const at::Tensor mixed = shape_.eager ? WrittenOut(q, k, v) : AsOne(q, k, v);
    return at::matmul(mixed.transpose(1, 2).reshape({x.size(0), x.size(1), shape_.width}), layer.output.t());
  }
  static at::Tensor WrittenOut(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    const at::Tensor hidden = (at::ones({q.size(2), k.size(2)}, at::kFloat).triu(1) * -1e9).to(q.scalar_type());
    const at::Tensor scores = at::matmul(q, k.transpose(2, 3)) / std::sqrt(static_cast<double>(q.size(3)));
    return at::matmul(at::softmax(scores + hidden, -1), v);
  }
  // The operator's name and arguments changed with the versions of LibTorch.
  static at::Tensor AsOne(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    auto op = addend::Operator::Find("aten::scaled_dot_product_attention", "");
    if (!op) op = addend::Operator::Find("aten::_scaled_dot_product_attention", "");
    addend::Stack stack;
    for (const c10::Argument& argument : op->schema().arguments()) {
      const std::string& name = argument.name();
      if (name == "query") {
        stack.emplace_back(q);
      } else if (name == "key") {
        stack.emplace_back(k);
      } else if (name == "value") {
        stack.emplace_back(v);
      } else if (name == "is_causal") {
        stack.emplace_back(true);
      } else {
        stack.push_back(argument.default_value() ? *argument.default_value() : c10::IValue());
      }
    }
    const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(op->schema().name().c_str(), "");
    handle.callBoxed(&stack);
    return stack[0].toTensor();
  }

  Shape shape_;
  at::Tensor words_, norm_, head_;
  std::vector<Layer> layers_;
};

double Seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// A number of /proc/self/status, in megabytes.
double Status(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kibibytes = 0;
    if (word == key && status >> kibibytes) return kibibytes * 1024 / 1e6;
  }
  return 0;
}

void ForgetPeak() { std::ofstream("/proc/self/clear_refs") << 5; }

bool Read(const std::string& argument, const std::string& name, int64_t* value) {
  const std::string start = "--" + name + "=";
  if (argument.rfind(start, 0) != 0) return false;
  *value = std::atoll(argument.c_str() + start.size());
  return true;
}

// Targets to explain: the largest logit, or the log-probabilities of a continuation in one of three ways.
std::vector<std::pair<std::string, std::vector<addend::Target>>> Questions(const at::Tensor& ids,
                                                                           int64_t continuation) {
  if (continuation == 0) return {{"largest logit", {addend::Target()}}};
  std::vector<addend::Target> each;
  addend::Target together;
  together.quantity = addend::Target::Quantity::kSum;
  for (int64_t k = 0; k < continuation; ++k) {
    addend::Target target;
    target.quantity = addend::Target::Quantity::kLogProbability;
    target.top1 = false;
    target.index = {0, k, ids[0][ids.size(1) - continuation + k].item<int64_t>()};
    each.push_back(target);
    together.parts.push_back(target);
  }
  return {{"first id", {each[0]}}, {"all ids together", {together}}, {"each id", each}};
}

// One line for one limit.
void Measure(const addend::TracedModel& traced, const addend::Input& input, double forward, int64_t limit,
             addend::ComputeDtype compute, const std::string& what, const std::vector<addend::Target>& targets) {
  addend::AttributeOptions options;
  options.policy.preset = addend::Preset::kFaithful;
  options.policy.compute_dtype = compute;
  options.policy.on_failure = addend::OnFailure::kWarn;
  options.memory_bytes = limit * 1000000;
  options.targets = targets;
  malloc_trim(0);  // what an earlier one left
  const double resident = Status("VmRSS:");
  ForgetPeak();
  const double start = Seconds();
  const addend::Attribution found = Attribute(traced, {input}, options);
  const double seconds = Seconds() - start;
  const addend::Contributions& target = found.targets[0];
  std::printf(
      "%s, limit %lld MB: forward %.2f s, %.2f forwards (trace %.2f, linearize %.2f, sweep %.2f), peak %.0f MB over "
      "%.0f MB, recovery error %.1e, leftover %.1e of the move\n",
      what.c_str(), static_cast<long long>(limit), forward, seconds / forward, found.report.trace_seconds / forward,
      found.report.linearize_seconds / forward, found.report.sweep_seconds / forward, Status("VmHWM:") - resident,
      resident, std::abs(target.recovery - target.value),
      std::abs(target.leftover / (target.value - target.reference)));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const c10::AutoGradMode no_grad(false);
  torch::manual_seed(0);
  at::set_num_threads(1);
  Shape shape;
  std::vector<int64_t> limits;
  for (int k = 1; k < argc; ++k) {
    int64_t limit = 0;
    const std::string argument = argv[k];
    if (Read(argument, "limit", &limit)) {
      limits.push_back(limit);
    } else if (argument == "--eager") {
      shape.eager = true;
    } else if (argument == "--bfloat16") {
      shape.dtype = at::kBFloat16;
    } else if (argument == "--float32") {
      shape.compute = addend::ComputeDtype::kFloat32;
    } else if (!Read(argument, "layers", &shape.layers) && !Read(argument, "width", &shape.width) &&
               !Read(argument, "heads", &shape.heads) && !Read(argument, "kv", &shape.kv) &&
               !Read(argument, "inner", &shape.inner) && !Read(argument, "tokens", &shape.tokens) &&
               !Read(argument, "continuation", &shape.continuation)) {
      std::fprintf(stderr, "%s is not known; see the first lines of the source\n", argument.c_str());
      return 1;
    }
  }
  if (limits.empty()) limits = {0, 50};
  const Model model(shape);
  const at::Tensor ids = at::randint(shape.words, {1, shape.tokens}, at::kLong);
  model(ids);  // warms up
  double forward = std::numeric_limits<double>::infinity();
  for (int k = 0; k < 3; ++k) {
    const double start = Seconds();
    model(ids);
    forward = std::min(forward, Seconds() - start);
  }
  const addend::TracedModel traced(
      addend::FromFunction([&](const std::vector<at::Tensor>& in) { return model(in[0]); }));
  addend::Input input;
  input.value = ids;
  input.split = addend::Split::AlongDims({1});
  input.baseline = addend::Baseline::Of(at::zeros_like(ids));
  for (const int64_t limit : limits) {
    for (const auto& [what, targets] : Questions(ids, shape.continuation)) {
      Measure(traced, input, forward, limit, shape.compute, what, targets);
    }
  }
  return 0;
}
