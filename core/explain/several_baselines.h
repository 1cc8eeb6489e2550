// Attributions against several baselines: contributions that are exact to f(x) minus the mean of f over the baselines,
// with how far they depend on the choice of one.
//
// Note [Means over baselines]
// Each attribution is exact up to its leftover: value = reference + contributions + leftover. So is their mean, part by
// part, since the value is the same in all: value = mean reference + mean contributions + mean leftover. A median of
// contributions adds up to nothing. The standard error is that of the mean, s / sqrt(K) with s the standard deviation
// over K baselines (K - 1 in the denominator), and says how far another draw of baselines would move the mean, if these
// are a draw. The share of baselines under which a contribution has the sign of its mean says how stable that sign is.
#ifndef ADDEND_CORE_EXPLAIN_SEVERAL_BASELINES_H_
#define ADDEND_CORE_EXPLAIN_SEVERAL_BASELINES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/explain/attribute.h"

namespace addend {

// The baselines of one input; none given: the input's own baseline serves all of them.
struct SeveralBaselines {
  at::Tensor rows;   // [K, *]: what broadcasts to one example of the input
  std::string word;  // not empty: the rows of a file, see below

  bool given() const { return rows.defined() || !word.empty(); }
};

// The words for messages and help: "rows:FILE or nearest:COUNT:FILE".
extern const char kSeveralBaselinesWords[];

// Whether a text is one of these words, whatever follows its colon.
bool IsSeveralBaselinesWord(const std::string& text);
// The file that such a word names.
std::string FileOfSeveralBaselinesWord(const std::string& word);

// The rows of a file that are baselines of an example:
//   "rows:FILE"            all of them, along the first dimension of a tensor in a .npy or .safetensors file, named as
//                          for "mean:FILE"
//   "nearest:COUNT:FILE"   those at the least distance from the example, nearest first, equal ones in the order of the
//                          file: the standardized Euclidean distance, in which each element is divided by its standard
//                          deviation over all rows of the file. Elements that are the same in all rows do not count.
// example: [*row] or [1, *row]. Gives [K, *row]. Throws InvalidArgument that names the word, NotFound where there is no
// such file.
at::Tensor RowsOfWord(const std::string& word, const at::Tensor& example);

// How the parts of one target depend on the baseline.
struct BaselineSpread {
  int64_t count = 0;  // of baselines
  // Numbers by component, in the order of the contributions, which are means.
  std::vector<double> standard_errors;  // NaN for a single baseline
  std::vector<double> same_sign;        // the share of baselines under which the sign is that of the mean
  double reference_standard_error = 0;
  double worst_leftover = 0;  // the largest magnitude under one baseline: leftovers of either sign cancel in the mean
};

struct BaselinesAttribution {
  Attribution mean;                    // as Attribution, of means over the baselines
  std::vector<BaselineSpread> spread;  // by target
};

// Attributes the targets of the options against each baseline, examples and baselines in one batch as far as that is
// possible; see Note [Examples in batches]. several: by input, empty at the end where there are none; all that are
// given have equally many rows, which belong together. at_once: how many attributions at most in a batch; 0: as seems
// reasonable. Throws what Attribute() throws; InvalidArgument where baselines do not fit, for operators and for splits
// inside the model; FailedPrecondition where examples of a batch influence each other.
BaselinesAttribution AttributeBaselines(const TracedModel& model, const std::vector<Input>& inputs,
                                        const std::vector<SeveralBaselines>& several,
                                        const AttributeOptions& options = {}, int64_t at_once = 0);

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_SEVERAL_BASELINES_H_
