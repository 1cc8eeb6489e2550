// Inputs of a model: how their elements are split into components, and what stands for "nothing".
#ifndef ADDEND_CORE_EXPLAIN_INPUT_H_
#define ADDEND_CORE_EXPLAIN_INPUT_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/composition/composition.h"
#include "core/run/inside_place.h"

namespace addend {

// How an input is split into components.
struct Split {
  enum class Kind {
    kPlain,   // not at all: the input is the same in value and reference
    kDims,    // one component for each position along some dimensions
    kLabels,  // one component for each label
    kParts,   // the caller gives the components
  };
  Kind kind = Kind::kPlain;
  std::vector<int64_t> dims;
  // kLabels: int64 of the input's shape, of its leading dimensions, or broadcastable to it; -1: no component, such an
  // element takes part in the reference with its value.
  at::Tensor labels;
  // kParts: [numc, *shape], floating-point; the rest of the input is its reference.
  at::Tensor parts;

  static Split Plain();
  static Split AlongDims(std::vector<int64_t> dims);
  static Split ByLabels(at::Tensor labels);
  static Split Parts(at::Tensor parts);
};

struct Baseline {
  at::Tensor tensor;   // broadcast to the input; beside a word: what that was found to stand for
  double number = 0;   // where no tensor is given; token ids are whole numbers
  std::string word;    // not empty: what the word stands for, see baselines.h
  bool given = false;  // false: zero, for want of anything better

  static Baseline Of(at::Tensor tensor);
  static Baseline Of(double number);
  static Baseline Token(int64_t id);
  static Baseline Named(std::string word);
};

struct Input {
  std::string name;  // for messages; empty: "input 0"
  at::Tensor value;  // floating-point, or integer ids that embeddings read
  // If not empty: selects, as DecomposeOptions::probes do, a floating-point tensor inside the model (heads of an
  // attention, neurons, experts) in place of an argument. `value` is then empty, because the model computes it. The
  // split is along dimensions or by labels, and the arguments, which are listed before, are plain.
  std::string inside;
  Split split;
  Baseline baseline;
  // The first component of this input on the common axis; -1: right behind those of the inputs before it.
  int64_t first_component = -1;

  static Input Plain(at::Tensor value);
  static Input Inside(std::string selector, Split split, Baseline baseline);
  // The components of a composition; its residual is the reference.
  static Input Of(const Composition& composition);
};

// A prepared input: checked, copied, contiguous.
struct PreparedInput {
  Split::Kind kind = Split::Kind::kPlain;
  bool ids = false;
  at::Tensor value;
  at::Tensor reference;  // what the model would be given as the baseline
  // Baseline that was asked for, where the reference is another because elements of the value are NaN or infinite;
  // undefined: it is the reference.
  at::Tensor baseline;
  const at::Tensor& BaselineAsked() const { return baseline.defined() ? baseline : reference; }
  at::Tensor labels;            // int64 of value's shape, counted on the common axis; -1: none
  bool labels_unclear = false;  // see AreUnclear()
  // Numbers of elements of a float input, for ids that are read from them; in a backward sweep only. See
  // LabelEveryId().
  at::Tensor read_labels;
  at::Tensor parts;  // [numc of all, *shape]
  // The place inside the model at which the split starts, else no call; `value` is then of the right shape only.
  InsidePlace inside;
};

struct PreparedInputs {
  std::vector<PreparedInput> inputs;
  int64_t numc = 0;
  bool baseline_given = false;
  std::vector<std::string> assumed;  // what was taken where no baseline was given: "zero for input 0"
  std::vector<std::string> notes;    // what has to be known of which tensors are split inside the model
};

// The values of the inputs, in their order.
std::vector<at::Tensor> ValuesOf(const PreparedInputs& inputs);

// The name of an input in messages, by its position: its own, or "input 0".
std::string InputName(const Input& input, size_t position);
// Describes a split: "plain", "dim=2,3", "labels", "parts"; the latter two with "=SOURCE" if one is given.
std::string DescribeSplit(const Split& split, const std::string& source = "");
// The number of components of one input, wherever they start on the common axis. Its split has to fit it.
int64_t NumComponents(const Input& input);
// Prepares inputs. Throws InvalidArgument, with the name of the input, for a dimension that does not exist, shapes or
// dtypes that do not fit, and a baseline or parts that are not finite. An input itself may be empty, and may hold NaN
// or infinity. `held`: tensors that the model holds, by name, for baselines that are given by a word.
PreparedInputs Prepare(const std::vector<Input>& inputs,
                       const std::vector<std::pair<std::string, at::Tensor>>& held = {});

// Labels with as many dimensions as an input of these sizes has, at least: those that are of its leading dimensions
// have ones behind theirs, others in front. Aligned labels mean the same of an input with another number of examples.
at::Tensor AlignLabels(at::Tensor labels, at::IntArrayRef sizes);

// Whether labels fit the leading dimensions of an input and the trailing ones, and mean another thing in each: with
// another number of examples they would mean the other one.
bool AreUnclear(const at::Tensor& labels, at::IntArrayRef sizes);

// A baseline in the dtype and on the device of the value that it is one of. Throws InvalidArgument where it does not
// fit: ids have whole numbers that their dtype holds, and only complex inputs complex ones.
at::Tensor BaselineLike(const std::string& name, const at::Tensor& baseline, const at::Tensor& value);

// Reads the file that the input's baseline names, if it names one, so that another file at its place changes nothing
// afterwards. The word stays for descriptions. Throws as Prepare() does.
void ReadBaselineFile(Input& input, size_t position);

// Whether ids may be read from the elements of an input.
bool ReadAsIds(const PreparedInput& input);

// Labels every id, for a backward sweep: ids get components of their own, one for each element, behind those that the
// caller asked for, because an embedding knows its ids by labels only. Elements of floats get numbers behind those,
// which they have where an id is read from them.
PreparedInputs LabelEveryId(PreparedInputs prepared);

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_INPUT_H_
