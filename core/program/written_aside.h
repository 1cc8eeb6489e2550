// Which written arguments are no results.
#ifndef ADDEND_CORE_PROGRAM_WRITTEN_ASIDE_H_
#define ADDEND_CORE_PROGRAM_WRITTEN_ASIDE_H_

#include <ATen/core/function_schema.h>

namespace addend {

// Whether an argument is what an operator leaves behind beside the results that it gives: running statistics and noise.
// Older versions of the schemas do not mark them as written, so that the results are what such a call is about in all
// versions.
bool IsWrittenAside(const c10::FunctionSchema& schema, const c10::Argument& argument);
// Whether it may be, whatever the schema marks: an operator that is called a second time is given copies, so that the
// model finds what the first call left.
bool MayBeWrittenAside(const c10::Argument& argument);

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_WRITTEN_ASIDE_H_
