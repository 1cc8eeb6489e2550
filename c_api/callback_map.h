// Linear maps that the caller's functions compute.
#ifndef ADDEND_C_API_CALLBACK_MAP_H_
#define ADDEND_C_API_CALLBACK_MAP_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "c_api/addend_ext.h"
#include "core/rules/rule.h"

namespace addend::c_api {

// A table of callbacks whose payload is released with its last copy.
template <typename Table>
struct Callbacks {
  Table table = {};
  std::shared_ptr<void> payload;
};

// Throws what the answer of a callback means, if it is not ADDEND_CALLBACK_OK; `who` answered.
void RequireZero(int32_t answer, const std::string& who);

// The map of a rule for `op`, from rows of tensors like `inputs` to rows of tensors like `output`.
std::shared_ptr<const LinearMap> MakeCallbackMap(const std::string& op,
                                                 std::shared_ptr<const Callbacks<addend_map_callbacks>> map,
                                                 const std::vector<at::Tensor>& inputs, const at::Tensor& output);

}  // namespace addend::c_api

#endif  // ADDEND_C_API_CALLBACK_MAP_H_
