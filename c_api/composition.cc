// Compositions.
#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "c_api/bodies.h"
#include "c_api/explanation.h"
#include "c_api/run.h"
#include "core/intercept/tracing_scope.h"

namespace addend::c_api {
namespace {

at::Tensor PartOf(const Composition& composition, int32_t part) {
  switch (part) {
    case ADDEND_COMPONENTS:
      return composition.components();
    case ADDEND_REFERENCE:
      return composition.reference();
    case ADDEND_LEFTOVER:
      return composition.leftover();
    case ADDEND_RESIDUAL:
      return composition.residual();
    case ADDEND_RECOVERY:
      return composition.recovery();
    case ADDEND_VALUE:
      return composition.value();
    default:
      throw InvalidArgument(absl::StrCat("part is ", part, "; addend_part has 0 to 5"));
  }
}

at::Tensor Leaf(const at::Tensor& tensor) { return tensor.detach().requires_grad_(true); }

Composition FromTensors(const at::Tensor& components, at::Tensor reference, at::Tensor leftover, bool in_graph) {
  if (!in_graph) {
    if (!reference.defined() && components.dim() > 0) reference = at::zeros_like(components.sum(0));
    return Composition(components, reference, leftover);
  }
  if (components.dim() == 0) throw InvalidArgument("components have at least one dimension: [numc, *S]");
  const at::Tensor zeros = at::zeros_like(components.detach().sum(0));
  return Composition::InGraph(Leaf(components), Leaf(reference.defined() ? reference : zeros),
                              Leaf(leftover.defined() ? leftover : zeros));
}

Composition Gradient(const Composition& output, const Composition& cotangent, const Composition& input) {
  if (!input.requires_grad()) {
    throw FailedPrecondition("input is in no graph; make it with in_graph 1, then call operators on it");
  }
  if (output.c_sizes() != cotangent.c_sizes()) {
    throw InvalidArgument("cotangent has other sizes than composition; it needs as many components, of the same shape");
  }
  std::vector<at::Tensor> outputs;
  std::vector<at::Tensor> cotangents;
  const auto add = [&](const at::Tensor& part, const at::Tensor& weight) {
    if (!part.requires_grad()) return;
    outputs.push_back(part);
    cotangents.push_back(weight.detach().to(part.options()));
  };
  add(output.components(), cotangent.components());
  add(output.reference(), cotangent.reference());
  add(output.leftover(), cotangent.leftover());
  if (outputs.empty()) throw FailedPrecondition("no gradient leads to composition: it was not computed from input");
  const std::vector<at::Tensor> leaves = {input.components(), input.reference(), input.leftover()};
  std::vector<at::Tensor> gradients =
      torch::autograd::grad(outputs, leaves, cotangents, /*retain_graph=*/true, /*create_graph=*/false,
                            /*allow_unused=*/true);
  bool connected = false;
  for (size_t k = 0; k < gradients.size(); ++k) {
    connected |= gradients[k].defined();
    if (!gradients[k].defined()) gradients[k] = at::zeros_like(leaves[k].detach());
  }
  if (!connected) throw FailedPrecondition("no gradient connects composition with input");
  return Composition(gradients[0], gradients[1], gradients[2]);
}

}  // namespace

extern "C" {

ADDEND_API addend_status* addend_composition_from_tensors(const addend_tensor* components,
                                                          const addend_tensor* reference, const addend_tensor* leftover,
                                                          int32_t in_graph,
                                                          addend_composition** out_composition) noexcept {
  return Guard([&] {
    const at::Tensor& parts = TensorOf(components, "components");
    RequireOut(out_composition, "out_composition");
    const TracingPause pause;
    const c10::AutoGradMode grad(true);
    Give(out_composition,
         FromTensors(parts, TensorOrNone(reference, "reference"), TensorOrNone(leftover, "leftover"), in_graph != 0));
  });
}

ADDEND_API addend_status* addend_composition_diagonal(const addend_tensor* value, const int64_t* dims, size_t num_dims,
                                                      const addend_tensor* baseline, int64_t offset, int64_t numc,
                                                      addend_composition** out_composition) noexcept {
  return Guard([&] {
    const at::Tensor& whole = TensorOf(value, "value");
    RequireArray(dims, num_dims, "dims");
    RequireOut(out_composition, "out_composition");
    const TracingPause pause;
    Give(out_composition, Composition::Diagonal(whole, std::vector<int64_t>(dims, dims + num_dims),
                                                TensorOrNone(baseline, "baseline"), offset, numc));
  });
}

ADDEND_API addend_status* addend_composition_from_labels(const addend_tensor* value, const addend_tensor* labels,
                                                         const addend_tensor* baseline, int64_t numc,
                                                         addend_composition** out_composition) noexcept {
  return Guard([&] {
    const at::Tensor& whole = TensorOf(value, "value");
    const at::Tensor& owners = TensorOf(labels, "labels");
    RequireOut(out_composition, "out_composition");
    const TracingPause pause;
    Give(out_composition, Composition::FromLabels(whole, owners, TensorOrNone(baseline, "baseline"), numc));
  });
}

ADDEND_API int64_t addend_composition_numc(const addend_composition* composition) noexcept {
  const CompositionBody* body = Peek(composition);
  return body == nullptr ? 0 : body->composition.numc();
}

ADDEND_API size_t addend_composition_num_dims(const addend_composition* composition) noexcept {
  const CompositionBody* body = Peek(composition);
  return body == nullptr ? 0 : body->composition.sizes().size();
}

ADDEND_API int64_t addend_composition_size(const addend_composition* composition, size_t dim) noexcept {
  const CompositionBody* body = Peek(composition);
  return body == nullptr || dim >= body->composition.sizes().size() ? -1 : body->composition.sizes()[dim];
}

ADDEND_API int32_t addend_composition_dtype(const addend_composition* composition) noexcept {
  const CompositionBody* body = Peek(composition);
  return body == nullptr ? 0 : DtypeNumber(body->composition.dtype());
}

ADDEND_API const char* addend_composition_device(const addend_composition* composition) noexcept {
  const CompositionBody* body = Peek(composition);
  return body == nullptr ? nullptr : body->device.c_str();
}

ADDEND_API addend_status* addend_composition_part(const addend_composition* composition, int32_t part,
                                                  addend_tensor** out_tensor) noexcept {
  return Guard([&] {
    const Composition& body = Get(composition, "composition").composition;
    RequireOut(out_tensor, "out_tensor");
    const TracingPause pause;
    Give(out_tensor, PartOf(body, part).detach());
  });
}

ADDEND_API addend_status* addend_composition_component(const addend_composition* composition, int64_t index,
                                                       addend_tensor** out_tensor) noexcept {
  return Guard([&] {
    const Composition& body = Get(composition, "composition").composition;
    RequireOut(out_tensor, "out_tensor");
    if (index < 0 || index >= body.numc()) {
      throw Error(absl::StatusCode::kOutOfRange,
                  absl::StrCat("index is ", index, ", but there are ", body.numc(), " components"));
    }
    const TracingPause pause;
    Give(out_tensor, body.component(index).detach());
  });
}

ADDEND_API addend_status* addend_composition_select(const addend_composition* composition, const int64_t* indices,
                                                    size_t num_indices, int32_t with_residual,
                                                    addend_composition** out_composition) noexcept {
  return Guard([&] {
    const CompositionBody& body = Get(composition, "composition");
    RequireArray(indices, num_indices, "indices");
    RequireOut(out_composition, "out_composition");
    const TracingPause pause;
    std::vector<int64_t> copy(indices, indices + num_indices);
    const at::Tensor index = at::from_blob(copy.data(), {static_cast<int64_t>(num_indices)}, at::kLong).clone();
    std::shared_ptr<const ExplainedRun> run = body.run == nullptr ? nullptr : RunBehind({body.run});
    Give(out_composition, body.composition.c_index_select(index, with_residual != 0), std::move(run));
  });
}

ADDEND_API addend_status* addend_composition_grad(const addend_composition* composition,
                                                  const addend_composition* cotangent, const addend_composition* input,
                                                  addend_composition** out_gradient) noexcept {
  return Guard([&] {
    const Composition& output = Get(composition, "composition").composition;
    const Composition& weights = Get(cotangent, "cotangent").composition;
    const Composition& leaves = Get(input, "input").composition;
    RequireOut(out_gradient, "out_gradient");
    const TracingPause pause;
    Give(out_gradient, Gradient(output, weights, leaves));
  });
}

ADDEND_API addend_status* addend_composition_explain(const addend_composition* composition, const char* target,
                                                     addend_explanation** out_explanation) noexcept {
  return Guard([&] {
    const CompositionBody& body = Get(composition, "composition");
    const std::string asked = Text(target, "target");
    RequireOut(out_explanation, "out_explanation");
    const TracingPause pause;
    Give(out_explanation, Explain(body.composition, ParseTarget(asked), "", body.run));
  });
}

ADDEND_API addend_status* addend_composition_to_string(const addend_composition* composition,
                                                       addend_string** out_text) noexcept {
  return Guard([&] {
    const Composition& body = Get(composition, "composition").composition;
    RequireOut(out_text, "out_text");
    const TracingPause pause;
    Give(out_text, body.ToString());
  });
}

ADDEND_API void addend_composition_release(addend_composition* composition) noexcept { Release(composition); }

}  // extern "C"

}  // namespace addend::c_api
