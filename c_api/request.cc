// Requests: what a model is asked.
#include "core/explain/request.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "c_api/bodies.h"
#include "c_api/structure.h"
#include "core/explain/baselines.h"

namespace addend::c_api {
namespace {

// Inputs of the example that is being added.
std::vector<RequestInput>& Inputs(RequestBody& body) {
  return body.further.empty() ? body.inputs : body.further.back();
}

RequestInput& LastOf(addend_request* request) {
  RequestBody& body = Get(request, "request");
  if (body.adding_inside) return body.inside.back();
  std::vector<RequestInput>& inputs = Inputs(body);
  if (inputs.empty()) throw FailedPrecondition("the request has no input yet; add one first");
  return inputs.back();
}

}  // namespace

extern "C" {

ADDEND_API addend_status* addend_request_create(addend_request** out_request) noexcept {
  return Guard([&] {
    RequireOut(out_request, "out_request");
    Give(out_request);
  });
}

ADDEND_API addend_status* addend_request_add_input(addend_request* request, const char* name,
                                                   const addend_tensor* value) noexcept {
  return Guard([&] {
    RequestBody& body = Get(request, "request");
    std::vector<RequestInput>& inputs = Inputs(body);
    RequestInput own;
    own.named = name != nullptr;
    own.input.name = own.named ? Text(name, "name") : absl::StrCat("input ", inputs.size());
    own.input.value = TensorOf(value, "value");
    for (const RequestInput& other : inputs) {
      if (own.named && other.input.name == own.input.name) {
        throw InvalidArgument(absl::StrCat("the request has an input ", name, " already"));
      }
    }
    inputs.push_back(std::move(own));
    body.adding_inside = false;
  });
}

ADDEND_API addend_status* addend_request_add_inside(addend_request* request, const char* selector) noexcept {
  return Guard([&] {
    RequestBody& body = Get(request, "request");
    RequestInput own;
    own.input.inside = own.input.name = Text(selector, "selector");
    if (own.input.inside.empty()) throw InvalidArgument("selector is empty");
    for (const RequestInput& other : body.inside) {
      if (other.input.inside == own.input.inside) {
        throw InvalidArgument(absl::StrCat("the request splits ", selector, " inside the model already"));
      }
    }
    body.inside.push_back(std::move(own));
    body.adding_inside = true;
  });
}

ADDEND_API addend_status* addend_request_split_dims(addend_request* request, const int64_t* dims,
                                                    size_t num_dims) noexcept {
  return Guard([&] {
    Input& input = LastOf(request).input;
    RequireArray(dims, num_dims, "dims");
    if (num_dims == 0) throw InvalidArgument("num_dims is 0; a split along dimensions names at least one");
    std::vector<int64_t> counted(dims, dims + num_dims);
    // How many dimensions there are inside the model shows when it runs.
    for (int64_t& dim : counted) {
      if (!input.inside.empty()) break;
      const int64_t asked = dim;
      if (dim < 0) dim += input.value.dim();
      if (dim < 0 || dim >= input.value.dim()) {
        throw InvalidArgument(
            absl::StrCat(input.name, " has ", input.value.dim(), " dimensions, but dims holds ", asked));
      }
    }
    input.split = Split::AlongDims(std::move(counted));
  });
}

ADDEND_API addend_status* addend_request_split_labels(addend_request* request, const addend_tensor* labels) noexcept {
  return Guard([&] {
    Input& input = LastOf(request).input;
    input.split = Split::ByLabels(TensorOf(labels, "labels"));
  });
}

ADDEND_API addend_status* addend_request_split_parts(addend_request* request, const addend_tensor* parts) noexcept {
  return Guard([&] {
    Input& input = LastOf(request).input;
    input.split = Split::Parts(TensorOf(parts, "parts"));
  });
}

ADDEND_API addend_status* addend_request_set_baseline(addend_request* request, const addend_tensor* baseline) noexcept {
  return Guard([&] {
    RequestInput& own = LastOf(request);
    own.input.baseline = Baseline::Of(TensorOf(baseline, "baseline"));
    own.several = {};
  });
}

ADDEND_API addend_status* addend_request_set_baseline_number(addend_request* request, double baseline) noexcept {
  return Guard([&] {
    RequestInput& own = LastOf(request);
    if (!std::isfinite(baseline))
      throw InvalidArgument(absl::StrCat("baseline is ", baseline, "; it has to be finite"));
    own.input.baseline = Baseline::Of(baseline);
    own.several = {};
  });
}

ADDEND_API addend_status* addend_request_set_baseline_word(addend_request* request, const char* word) noexcept {
  return Guard([&] {
    RequestInput& own = LastOf(request);
    const std::string text = Text(word, "word");
    if (IsSeveralBaselinesWord(text)) {
      FileOfSeveralBaselinesWord(text);  // throws where its count is none
      own.several = {at::Tensor(), text};
      own.input.baseline = {};
    } else {
      RequireBaselineWord(text);
      own.input.baseline = Baseline::Named(text);
      own.several = {};
    }
  });
}

ADDEND_API addend_status* addend_request_set_baselines(addend_request* request,
                                                       const addend_tensor* baselines) noexcept {
  return Guard([&] {
    RequestInput& own = LastOf(request);
    const at::Tensor& rows = TensorOf(baselines, "baselines");
    if (rows.dim() == 0 || rows.size(0) == 0)
      throw InvalidArgument("baselines holds no baseline: its first dimension counts them");
    own.several = {rows, ""};
    own.input.baseline = {};
  });
}

ADDEND_API addend_status* addend_request_set_first_component(addend_request* request, int64_t first) noexcept {
  return Guard([&] {
    Input& input = LastOf(request).input;
    // The limit refuses nonsense: components in front of the input are allocated, all zero.
    constexpr int64_t kMost = int64_t{1} << 31;
    if (first < -1 || first > kMost) {
      throw InvalidArgument(absl::StrCat("first is ", first, "; it counts components, or is -1"));
    }
    input.first_component = first;
  });
}

ADDEND_API addend_status* addend_request_add_name(addend_request* request, const char* name) noexcept {
  return Guard([&] {
    RequestInput& input = LastOf(request);
    input.names.push_back(Text(name, "name"));
  });
}

ADDEND_API addend_status* addend_request_add_probe(addend_request* request, const char* selector) noexcept {
  return Guard([&] {
    RequestBody& body = Get(request, "request");
    body.probes.push_back(Text(selector, "selector"));
  });
}

ADDEND_API addend_status* addend_request_add_output(addend_request* request, const char* name) noexcept {
  return Guard([&] {
    RequestBody& body = Get(request, "request");
    body.outputs.push_back(Text(name, "name"));
  });
}

ADDEND_API addend_status* addend_request_add_parameter(addend_request* request, const char* name,
                                                       const addend_tensor* tensor) noexcept {
  return Guard([&] {
    RequestBody& body = Get(request, "request");
    const std::string own = Text(name, "name");
    body.parameters.emplace_back(own, TensorOf(tensor, "tensor"));
  });
}

ADDEND_API addend_status* addend_request_add_buffer(addend_request* request, const char* name,
                                                    const addend_tensor* tensor) noexcept {
  return Guard([&] {
    RequestBody& body = Get(request, "request");
    const std::string own = Text(name, "name");
    body.buffers.emplace_back(own, TensorOf(tensor, "tensor"));
  });
}

ADDEND_API addend_status* addend_request_add_target(addend_request* request, const char* target) noexcept {
  return Guard([&] {
    RequestBody& body = Get(request, "request");
    body.targets.push_back(ParseTarget(Text(target, "target")));
  });
}

ADDEND_API addend_status* addend_request_next_example(addend_request* request) noexcept {
  return Guard([&] {
    RequestBody& body = Get(request, "request");
    if (Inputs(body).empty()) throw FailedPrecondition("the example before the next one has no input yet");
    body.further.emplace_back();
    body.adding_inside = false;
  });
}

ADDEND_API addend_status* addend_request_set_structure(addend_request* request, const char* structure) noexcept {
  return Guard([&] {
    RequestBody& body = Get(request, "request");
    auto own = structure == nullptr ? nullptr : ParseStructure(Text(structure, "structure"));
    body.structures.resize(body.further.size() + 1);
    body.structures.back() = std::move(own);
  });
}

ADDEND_API addend_status* addend_request_set_option(addend_request* request, const char* key,
                                                    const char* value) noexcept {
  return Guard([&] {
    RequestBody& body = Get(request, "request");
    const std::string option = Text(key, "key");
    SetRequestOption(body, option, Text(value, "value"));
  });
}

ADDEND_API addend_status* addend_request_set_cancellation(addend_request* request,
                                                          const addend_cancellation* cancellation) noexcept {
  return Guard([&] {
    RequestBody& body = Get(request, "request");
    body.cancelled = cancellation == nullptr ? nullptr : Get(cancellation, "cancellation").cancelled;
  });
}

ADDEND_API void addend_request_release(addend_request* request) noexcept { Release(request); }

}  // extern "C"

}  // namespace addend::c_api
