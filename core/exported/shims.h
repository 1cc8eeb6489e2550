// Functions in place of operators: what an exported program calls and this LibTorch may lack, made of operators that
// every supported LibTorch has.
#ifndef ADDEND_CORE_EXPORTED_SHIMS_H_
#define ADDEND_CORE_EXPORTED_SHIMS_H_

#include <ATen/core/function_schema.h>

#include <string>

#include "core/exported/steps.h"

namespace addend::exported {

struct Shim {
  c10::FunctionSchema schema;
  BoxedFunction function = nullptr;
  // Stands for the operator in every LibTorch: what it checks or reads is not for the dispatcher, or there is a rule
  // for each of its parts and none for the whole.
  bool always = false;
};

// Finds the function for an operator ("aten::rms_norm") and overload; null: there is none. Where a shim gives a view or
// the layout of memory matters, it gives what the operator gives.
const Shim* FindShim(const std::string& name, const std::string& overload);

}  // namespace addend::exported

#endif  // ADDEND_CORE_EXPORTED_SHIMS_H_
