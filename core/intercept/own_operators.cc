#include "core/intercept/own_operators.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>
#include <c10/core/GradMode.h>
#include <torch/library.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <string>

#include "core/intercept/tracing_scope.h"
#include "core/intercept/tree_ensemble.h"

namespace addend {
namespace {

uint64_t Mixed(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
  return hash ^ (hash >> 32);
}

// Hash of a tensor's elements. Equal bits give the same number in every process, since programs are saved.
int64_t NumberOfElements(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.is_meta()) return 0;
  const TracingPause pause;
  const c10::AutoGradMode no_grad(false);
  at::Tensor dense = tensor.layout() == at::kStrided ? tensor : tensor.to_dense();
  dense = dense.resolve_conj().resolve_neg().cpu().contiguous();
  const auto* bytes = static_cast<const char*>(dense.data_ptr());
  const size_t nbytes = static_cast<size_t>(dense.numel()) * dense.itemsize();
  uint64_t hash = 1469598103934665603ull;
  for (const int64_t size : dense.sizes()) hash = Mixed(hash, static_cast<uint64_t>(size));
  for (size_t at = 0; at < nbytes; at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + at, std::min(sizeof(word), nbytes - at));
    hash = Mixed(hash, word);
  }
  return static_cast<int64_t>(hash);
}

using Mask = c10::optional<at::Tensor>;

at::Tensor Attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const Mask& attn_mask,
                  const Mask& shown, const Mask& hidden, double scale) {
  constexpr double kNothing = -std::numeric_limits<double>::infinity();
  at::Tensor scores = at::matmul(query, key.transpose(-2, -1)) * scale;
  if (attn_mask.has_value()) scores = scores + *attn_mask;
  if (shown.has_value()) scores = scores.masked_fill(shown->logical_not(), kNothing);
  if (hidden.has_value()) scores = scores.masked_fill(*hidden, kNothing);
  return at::matmul(scores.softmax(-1), value);
}

// "addend::attention" -> "attention".
std::string OwnName(const std::string& name) { return name.substr(name.rfind(':') + 1); }

// Whether no other copy of this library in the process, which may be an older one, has registered the operator.
bool IsMissing(const char* name) { return !c10::Dispatcher::singleton().findSchema({name, ""}); }

}  // namespace

bool IsOwnOperator(const std::string& name) { return name.rfind("addend::", 0) == 0; }

void RegisterOwnOperators() {
  // Never taken back: programs that name them may be run until the process ends. The library lies in static memory,
  // since a compiler drops a pointer that nothing reads, and leak checkers then report what it led to.
  alignas(torch::Library) static char memory[sizeof(torch::Library)];
  static const bool registered = [] {
    auto* library = new (memory) torch::Library(torch::Library::FRAGMENT, "addend", {}, __FILE__, __LINE__);
    if (IsMissing(kElementsReadOutside)) {
      const std::string read = OwnName(kElementsReadOutside);
      // Conservative: TorchScript keeps calls whose result nobody uses.
      library->def(torch::schema((read + "(Tensor self) -> int").c_str(), c10::AliasAnalysisKind::CONSERVATIVE));
      library->impl(read.c_str(),
                    torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, TORCH_FN(NumberOfElements)));
    }
    if (IsMissing(kAttention)) {
      library->def((OwnName(kAttention) + "(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, Tensor? shown, "
                                          "Tensor? hidden, float scale) -> Tensor")
                       .c_str(),
                   TORCH_FN(Attend));
    }
    if (IsMissing(kTreeEnsemble)) {
      const std::string trees = OwnName(kTreeEnsemble);
      library->def((trees + "(Tensor input, Tensor roots, Tensor features, Tensor modes, Tensor thresholds, "
                            "Tensor children, Tensor missing_true, Tensor leaf_starts, Tensor targets, "
                            "Tensor weights, int num_targets) -> Tensor")
                       .c_str());
      library->impl(trees.c_str(), torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, TORCH_FN(SumOfTrees)));
    }
    return true;
  }();
  static_cast<void>(registered);
}

}  // namespace addend
