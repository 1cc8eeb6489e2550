// Arguments that an operator writes beside its results: running statistics and noise.
#ifndef ADDEND_CORE_PROGRAM_WRITTEN_ASIDE_H_
#define ADDEND_CORE_PROGRAM_WRITTEN_ASIDE_H_

#include <ATen/core/function_schema.h>

namespace addend {

// Whether an argument is running statistics or noise that the operator writes beside its results, not as one of them.
// Older versions of such schemas do not mark these arguments as written, so leaving them out gives the same results in
// all versions.
bool IsWrittenAside(const c10::FunctionSchema& schema, const c10::Argument& argument);
// Whether an argument may be running statistics or noise, whatever the schema marks. An operator that is called a
// second time gets copies of such arguments, so that the model finds what the first call left.
bool MayBeWrittenAside(const c10::Argument& argument);

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_WRITTEN_ASIDE_H_
