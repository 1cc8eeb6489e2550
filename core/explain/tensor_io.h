// The header's place before programs were stored in files too.
#ifndef ADDEND_CORE_EXPLAIN_TENSOR_IO_H_
#define ADDEND_CORE_EXPLAIN_TENSOR_IO_H_

#include "core/program/tensor_io.h"  // IWYU pragma: export

#endif  // ADDEND_CORE_EXPLAIN_TENSOR_IO_H_
