// Recorded programs as models: they are decomposed and attributed like the model that was recorded.
#ifndef ADDEND_CORE_MODEL_PROGRAM_MODEL_H_
#define ADDEND_CORE_MODEL_PROGRAM_MODEL_H_

#include <memory>

#include "core/model/model.h"
#include "core/program/recorded_program.h"

namespace addend {

// The program, with every guard checked. Its operators say that they stand where they stood in the recorded model.
// Throws InvalidArgument where there is no program.
std::shared_ptr<Model> FromProgram(std::shared_ptr<const RecordedProgram> program);

}  // namespace addend

#endif  // ADDEND_CORE_MODEL_PROGRAM_MODEL_H_
