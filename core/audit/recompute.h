// Computes a recorded decision again, from its record, the model and the inputs.
#ifndef ADDEND_CORE_AUDIT_RECOMPUTE_H_
#define ADDEND_CORE_AUDIT_RECOMPUTE_H_

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/json.h"
#include "core/document/report_json.h"
#include "core/model/model.h"
#include "core/program/tensor_io.h"

namespace addend {

class Recomputer {
 public:
  // `models`: files by digest. Throws what reading these throws.
  Recomputer(std::map<std::string, std::string> models, const std::vector<TensorFile>& inputs, Writer writer);

  // Computes a record again, whose request consists of `content` (null: not known). Gives
  //   {"result": "same" | "different" | "not_computed",
  //    "reason": why it was not computed, else null,
  //    "largest_difference", "relative_difference": of all numbers; the latter over the largest of them; null where it
  //                                                 was not computed
  //    "differences": [...]: what was different in the environment, one line each}
  // A number is the same where its bits are, a zero's sign apart.
  Json Compute(const Json& record, const Json& content);

 private:
  std::vector<at::Tensor> FindInputs(const Json& recorded) const;
  std::shared_ptr<Model> ModelOf(const Json& recorded, const std::string& device);

  std::map<std::string, std::string> files_;
  std::vector<std::pair<std::string, at::Tensor>> tensors_;  // of the files of inputs, by name
  std::map<std::string, std::shared_ptr<Model>> loaded_;     // by what a record says of its model
  Writer writer_;
};

}  // namespace addend

#endif  // ADDEND_CORE_AUDIT_RECOMPUTE_H_
