// Recorded programs as models, which are decomposed and attributed like the model that was recorded.
#ifndef ADDEND_CORE_MODEL_PROGRAM_MODEL_H_
#define ADDEND_CORE_MODEL_PROGRAM_MODEL_H_

#include <memory>

#include "core/model/model.h"
#include "core/program/recorded_program.h"

namespace addend {

// Makes a model of a program, with every guard checked. Its operators have the positions that they had in the recorded
// model. Throws InvalidArgument if there is no program.
std::shared_ptr<Model> FromProgram(std::shared_ptr<const RecordedProgram> program);

}  // namespace addend

#endif  // ADDEND_CORE_MODEL_PROGRAM_MODEL_H_
