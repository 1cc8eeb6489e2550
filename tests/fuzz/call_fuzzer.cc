// Any operator that has a rule, called on whatever arguments: a status, never a crash. What it is given is drawn from
// the bytes: compositions and tensors of small shapes, numbers, lists, texts, names.
#include <set>
#include <string>
#include <vector>

#include "addend/addend.hpp"
#include "tests/fuzz/bytes.h"

namespace addend {
namespace {

using api::Check;
using api::Composition;
using api::Tensor;

double Number(Bytes& bytes) {
  static const double numbers[] = {0, 1, -1, 0.5, 2, -2.5, 3, 100, 1e-8, -0.0};
  return numbers[bytes.Below(10)];
}

std::vector<int64_t> Shape(Bytes& bytes) {
  std::vector<int64_t> shape(bytes.Below(5));
  for (int64_t& size : shape) size = static_cast<int64_t>(bytes.Below(4));
  return shape;
}

Tensor RandomTensor(Bytes& bytes, std::vector<int64_t> shape) {
  size_t count = 1;
  for (const int64_t size : shape) count *= static_cast<size_t>(size);
  if (bytes.Below(4) == 0) {
    std::vector<int64_t> numbers(count);
    for (int64_t& number : numbers) number = static_cast<int64_t>(bytes.Below(3));
    return Tensor::Copy(numbers, shape);
  }
  std::vector<double> numbers(count);
  for (double& number : numbers) number = Number(bytes);
  if (bytes.Below(2) == 0) return Tensor::Copy(numbers, shape);
  return Tensor::Copy(std::vector<float>(numbers.begin(), numbers.end()), shape);
}

Composition RandomComposition(Bytes& bytes) {
  std::vector<int64_t> shape = Shape(bytes);
  shape.insert(shape.begin(), static_cast<int64_t>(bytes.Below(3)));
  return Composition::FromTensors(RandomTensor(bytes, shape));
}

void AddArgument(Bytes& bytes, addend_arguments* arguments, int depth) {
  static const char* const names[] = {"dim", "keepdim", "alpha", "other", "dtype", "self", "no such name", "\xFF"};
  const char* name = bytes.Below(8) == 0 ? names[bytes.Below(8)] : nullptr;
  switch (bytes.Below(11)) {
    case 0:
    case 1:
    case 2:
      Check(addend_arguments_add_composition(arguments, name, RandomComposition(bytes).get()));
      break;
    case 3:
      Check(addend_arguments_add_tensor(arguments, name, RandomTensor(bytes, Shape(bytes)).get()));
      break;
    case 4:
      Check(addend_arguments_add_i64(arguments, name, static_cast<int64_t>(bytes.Below(9)) - 4));
      break;
    case 5:
      Check(addend_arguments_add_f64(arguments, name, Number(bytes)));
      break;
    case 6:
      Check(addend_arguments_add_bool(arguments, name, static_cast<int32_t>(bytes.Below(2))));
      break;
    case 7: {
      const std::vector<int64_t> list = Shape(bytes);
      Check(addend_arguments_add_i64s(arguments, name, list.data(), list.size()));
      break;
    }
    case 8:
      Check(addend_arguments_add_none(arguments, name));
      break;
    case 9:
      Check(addend_arguments_add_str(arguments, name, bytes.Below(2) == 0 ? "mean" : "floor"));
      break;
    default:
      if (depth == 3) break;
      Check(addend_arguments_begin_list(arguments, name));
      for (size_t k = bytes.Below(4); k > 0; --k) AddArgument(bytes, arguments, depth + 1);
      Check(addend_arguments_end_list(arguments));
      break;
  }
}

// True if LibTorch 1.13 itself does not survive the operator on such arguments, called without Addend.
bool BreaksLibTorch(const std::string& op) {
  static const auto& names = *new std::set<std::string>{
      "aten::native_channel_shuffle",  // divides by its number of groups, whatever that is
      "aten::_weight_norm_interface",  // divides by what an empty norm has
      "aten::_pdist_forward",          // an inner operator that believes its argument to be what pdist makes of it
  };
  return names.count(op) != 0;
}

void Run(Bytes& bytes) {
  const std::string op = addend_op_name(bytes.Below(addend_op_count()));
  if (BreaksLibTorch(op)) return;
  api::Arguments arguments;
  for (size_t k = 1 + bytes.Below(5); k > 0; --k) AddArgument(bytes, arguments.get(), 0);
  const api::Results results = api::Call(op, arguments);
  // Results can be asked for everything.
  for (size_t k = 0; k < results.size(); ++k) {
    if (!results.is_composition(k)) continue;
    const Composition composition = results.composition(k);
    composition.recovery();
    composition.ToString();
    addend_explanation* explanation = nullptr;
    addend_status_release(addend_composition_explain(composition.get(), "top1", &explanation));
    addend_explanation_release(explanation);
  }
}

}  // namespace
}  // namespace addend

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  addend::Bytes bytes(data, size);
  try {
    addend::Run(bytes);
  } catch (const addend::api::Error&) {
    // A status is what there has to be.
  }
  return addend_debug_live(ADDEND_HANDLE_ANY) == 0 ? 0 : -1;
}
