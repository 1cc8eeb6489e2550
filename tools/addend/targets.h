// Targets: what a user calls them, what they are called in turn, and what else is known of a number to explain.
#ifndef ADDEND_TOOLS_ADDEND_TARGETS_H_
#define ADDEND_TOOLS_ADDEND_TARGETS_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "core/explain/report.h"
#include "core/explain/target.h"
#include "tools/addend/explanation.h"
#include "tools/addend/inputs.h"
#include "tools/addend/parts.h"

namespace addend::cli {

inline constexpr char kLogits[] = "logits";

// A target as text: what the core reads, the name of a class, or two of them, "German-Dutch": the first minus the
// second.
Target FindTarget(const std::string& text, const std::vector<std::string>& classes);

// Throws where the input holds several samples, each with a largest output, so that top1 means none of them. Costs a
// plain run only where that may be.
void CheckOneSample(const LoadedRun& run);

// Describes targets of one tensor: their names, probabilities and tolerances.
class TargetMaker {
 public:
  // Refers to its arguments. `at`: what the user asked for with --at, empty: the output.
  TargetMaker(const at::Tensor& value, const std::string& at, const Parts& parts, const Report& report);
  ExplainedTarget Make(Contributions numbers) const;
  // Whether the row that the target is in holds probabilities although nobody asked for them.
  bool probabilities(const ExplainedTarget& target) const;

 private:
  std::string Described() const;
  std::string NameOf(const std::vector<int64_t>& index) const;

  const at::Tensor& value_;
  const std::string& at_;
  const Parts& parts_;
  const Report& report_;
  bool named_ = false;
  bool distribution_ = false;
};

}  // namespace addend::cli

#endif  // ADDEND_TOOLS_ADDEND_TARGETS_H_
