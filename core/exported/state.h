// The parameters, buffers and constants of an exported program as its model holds them.
#ifndef ADDEND_CORE_EXPORTED_STATE_H_
#define ADDEND_CORE_EXPORTED_STATE_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <functional>
#include <map>
#include <string>

namespace addend::exported {

// Converts tensors to other types and to a device. Tensors that share memory do so afterwards, if they had one type.
// Where nothing changes, the memory is that of the given tensors, unless copies are asked for.
std::map<std::string, at::Tensor> Converted(const std::map<std::string, at::Tensor>& tensors,
                                            const std::function<c10::ScalarType(c10::ScalarType)>& dtype,
                                            c10::Device device, bool copy);

}  // namespace addend::exported

#endif  // ADDEND_CORE_EXPORTED_STATE_H_
