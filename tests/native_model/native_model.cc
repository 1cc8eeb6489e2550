#include "tests/native_model/native_model.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/softmax.h>

#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

std::string& Error() {
  thread_local std::string error;
  return error;
}

// The new tensor that `function` gives; null where it throws.
void* Made(const std::function<at::Tensor()>& function) {
  try {
    Error().clear();
    return new at::Tensor(function());
  } catch (const std::exception& e) {
    Error() = e.what();
    return nullptr;
  }
}

const at::Tensor& Tensor(const void* address) { return *static_cast<const at::Tensor*>(address); }

// Numbers that look like those of a trained layer and are the same everywhere.
at::Tensor Numbers(const std::vector<int64_t>& sizes, double phase) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return at::arange(count, at::kFloat).mul(2.3).add(phase).sin().mul(0.8).reshape(sizes);
}

}  // namespace

struct native_model {
  native_model() {
    Add("encoder.0.weight", Numbers({6, 4}, 0), true);
    Add("encoder.0.bias", Numbers({6}, 1), true);
    Add("encoder.1.weight", Numbers({6, 6}, 2), true);
    Add("encoder.1.bias", Numbers({6}, 3), true);
    Add("norm.running_mean", Numbers({6}, 4), false);
    Add("norm.running_var", Numbers({6}, 5).abs().add(0.5), false);
    Add("head.weight", Numbers({3, 6}, 6), true);
    Add("head.bias", Numbers({3}, 7), true);
  }

  void Add(const std::string& name, at::Tensor tensor, bool learned) {
    tensors.push_back({name, learned ? tensor.requires_grad_() : tensor});
  }

  const at::Tensor& operator[](const std::string& name) const {
    for (const NamedTensor& one : tensors) {
      if (one.name == name) return one.tensor;
    }
    throw std::out_of_range(name);
  }

  at::Tensor Linear(const std::string& path, const at::Tensor& x) const {
    return at::linear(x, (*this)[path + ".weight"], (*this)[path + ".bias"]);
  }

  at::Tensor Forward(const at::Tensor& x, const std::function<void(const char*)>& enter) const {
    at::Tensor h = x;
    for (const char* path : {"encoder.0", "encoder.1"}) {
      enter(path);
      h = at::relu(Linear(path, h));
    }
    enter("norm");
    h = at::batch_norm(h, {}, {}, (*this)["norm.running_mean"], (*this)["norm.running_var"], false, 0.1, 1e-5, false);
    enter("head");
    h = Linear("head", h);
    enter("");
    return at::softmax(h, -1);
  }

  std::vector<NamedTensor> tensors;
};

const char* native_error(void) { return Error().c_str(); }

void* native_tensor(const float* numbers, const int64_t* sizes, size_t num_sizes) {
  return Made([&] {
    return at::from_blob(const_cast<float*>(numbers), at::IntArrayRef(sizes, num_sizes), at::kFloat).clone();
  });
}

void native_tensor_release(void* tensor) { delete static_cast<at::Tensor*>(tensor); }

void* native_linear(const void* x, const void* weight, const void* bias) {
  return Made([&] { return at::linear(Tensor(x), Tensor(weight), Tensor(bias)); });
}

void* native_relu(const void* x) {
  return Made([&] { return at::relu(Tensor(x)); });
}

native_model* native_model_create(void) { return new native_model(); }

void native_model_release(native_model* model) { delete model; }

size_t native_model_num_tensors(const native_model* model) { return model->tensors.size(); }

const char* native_model_tensor_name(const native_model* model, size_t index) {
  return model->tensors[index].name.c_str();
}

int32_t native_model_tensor_is_learned(const native_model* model, size_t index) {
  return model->tensors[index].tensor.requires_grad() ? 1 : 0;
}

const void* native_model_tensor(const native_model* model, size_t index) { return &model->tensors[index].tensor; }

void* native_model_forward(const native_model* model, const void* x, native_hook hook, void* payload) {
  return Made([&] {
    return model->Forward(Tensor(x), [&](const char* path) {
      if (hook != nullptr) hook(payload, path);
    });
  });
}
