// The complete record of one run: enough to print it, to search it, to store it, and to run it again without the model.
//
// Note [Values and storages]
// A value is a tensor object as one call (or the caller, or the model's parameters) made it; the program numbers
// values. Because values alias, every value names its storage, and every use of a value names the version of that
// storage, which counts the writes. A write through a view changes the version for all values of the storage, and a use
// depends on the call that made the value and the call that made the version; see Dependencies().
//
// Note [What a run freezes]
// A recording holds what the model did for one input. Numbers that left the tensors (item(), the shape of nonzero())
// may have steered it or may have become arguments. They are recorded as guards, and a replay compares them. What was
// computed from parameters, constants and sizes alone is a property: it cannot be another number for another input of
// these sizes. Tensors that no operator made (torch.tensor([1.0]), memory filled from outside) are constants.
#ifndef ADDEND_CORE_PROGRAM_RECORDED_PROGRAM_H_
#define ADDEND_CORE_PROGRAM_RECORDED_PROGRAM_H_

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>
#include <c10/util/SmallVector.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/intercept/operator.h"
#include "core/intercept/script_frames.h"
#include "core/program/call_text.h"
#include "core/program/geometry.h"
#include "core/program/structure.h"

namespace addend {

enum class ValueKind {
  kInput,      // the caller gave it
  kParameter,  // the model's, by name; learned
  kBuffer,     // the model's, by name; not learned
  kConstant,   // appeared during the run and no recorded call had made it
  kResult,     // what a call gave, or what a written argument is after the call
  kPart,       // elements of a known storage in a geometry that no recorded call gave
};
// How the name begins of a constant that an operator saved for its gradient; see Note [Differentiation] in
// differentiation.h. Of other constants: "constant_".
inline constexpr char kSavedName[] = "saved_";
// "input", "parameter", ...
const char* ValueKindName(ValueKind kind);

struct RecordedValue {
  // Moves promise not to throw, or a growing vector would copy.
  RecordedValue() = default;
  RecordedValue(const RecordedValue&) = default;
  RecordedValue(RecordedValue&&) noexcept = default;
  RecordedValue& operator=(const RecordedValue&) = default;
  RecordedValue& operator=(RecordedValue&&) noexcept = default;

  // Unique in the program: the input's or the parameter's qualified name, "constant_0", and for results the operator
  // with a counter: "linear", "linear_1"; "max_2.0" and "max_2.1" where a call gives several.
  std::string name;
  ValueKind kind = ValueKind::kResult;
  int storage = -1;
  int version = 0;  // of the storage when the value was made or first seen
  at::ScalarType dtype = at::ScalarType::Undefined;
  Geometry geometry;
  c10::Device device = c10::kCPU;
  bool conjugated = false;
  bool negated = false;
  bool wrapped_number = false;  // a number that LibTorch wrapped: it does not take part in type promotion
  bool requires_grad = false;   // of parameters, buffers and constants
  int call = -1;                // kResult: the call that made it
  int result = -1;              // kResult: its position among results, or behind them among written
};

struct RecordedStorage {
  // How it came into the program. kConstant: from outside; also where a call allocated it and no recorded call wrote it
  // before its elements were read (torch.tensor() does so).
  ValueKind kind = ValueKind::kResult;
  int64_t nbytes = 0;        // as last seen
  int value = -1;            // the first value that lay in it
  std::vector<int> writers;  // the calls that wrote it, ascending; writers[v - 1] made version v
  // Parameters, buffers and constants: one-dimensional over the whole storage as it was when the run met it. It shares
  // the model's memory unless the run overwrote it or the model is live. Undefined for every other kind, and without
  // elements on the meta device.
  at::Tensor initial;
  bool copied = false;  // `initial` is a copy
  // kConstant in memory that a call allocated: the call that was the first to read it, which is where `initial` was
  // found there; the number of calls where only the output does. -1: no call allocated it.
  int filled = -1;
};

// A tensor argument of a call.
struct TensorUse {
  int16_t argument = -1;  // position in the schema
  int value = -1;         // -1: an undefined tensor
  int version = 0;        // of the value's storage at the call
  // The call changes it: its elements, or with in-place views (t_) and set_() only where they lie.
  bool written = false;
};

struct RecordedCall {
  explicit RecordedCall(const Operator& called) : op(called) {}
  RecordedCall(const RecordedCall&) = default;
  RecordedCall(RecordedCall&&) noexcept = default;
  RecordedCall& operator=(const RecordedCall&) = default;
  RecordedCall& operator=(RecordedCall&&) noexcept = default;

  Operator op;
  // Arguments by position in op.schema().arguments(), whose name() is what they are called. Tensors are None: they are
  // uses. A list of optional tensors is a list of integers, 1 for each tensor that is there and 0 for each that is not;
  // an empty list of tensors is an empty one.
  std::vector<c10::IValue> arguments;
  c10::SmallVector<TensorUse, 4> uses;    // in the order of the arguments, lists flattened
  c10::SmallVector<int, 2> results;       // values returned, lists flattened; -1: an undefined tensor
  c10::SmallVector<int, 2> result_sizes;  // only where a list is returned: how many of `results` each return takes
  c10::SmallVector<int, 2> written;       // for each written use, in their order: the value that it is afterwards
  int place = -1;                         // in RecordedProgram::places; -1: not known
  int guard = -1;                         // in RecordedProgram::guards; -1: none
  bool is_view = false;                   // every result lies in the storage of an argument, and nothing is written
  bool random = false;                    // draws from a generator
  bool grad_mode = false;                 // gradients were enabled
};

enum class GuardKind {
  kNumber,    // numbers computed from elements of inputs: item(), is_nonzero(), equal()
  kShape,     // the sizes of a result that depend on such elements: nonzero(), masked_select(), unique()
  kProperty,  // what no element of an input tells: size(), numel(), is_floating_point(), item() of a parameter
};
// "number", "shape", "property".
const char* GuardKindName(GuardKind kind);

// A guard: a number about tensors that reached the program around the operators, which may have acted on it.
struct RecordedGuard {
  GuardKind kind = GuardKind::kNumber;
  int call = -1;
  // Number that the call gave, or a tuple if it returns several. kShape: for each result its sizes.
  c10::IValue value;
};

struct RecordedInput {
  std::string name;
  Structure structure;  // tensors are values of the program
};

// A number among the arguments of a call, or an element of a constant, that follows a dimension of an input, or the
// product of two: factor * ((size + shift) / divisor, rounded down) + offset.
struct SizeRelation {
  int call = -1;  // -1: of a constant
  int16_t argument = -1;
  int element = -1;  // in a list of integers, -1: the argument itself; of a constant in its whole storage
  int storage = -1;  // the constant's, where there is no call
  int input = -1;    // value
  int dim = -1;
  int other_input = -1;  // of a product: value; -1: of no product
  int other_dim = -1;
  int64_t factor = 1;
  int64_t offset = 0;
  int64_t divisor = 1;  // positive
  int64_t shift = 0;    // less than the divisor
};

// A dimension of an input that may have another size at replay.
struct FreeDimension {
  int input = -1;  // value
  int dim = -1;
  int like = -1;  // in RecordedProgram::free: the dimension whose size it must have; -1: free by itself
  // The sizes that it may have, those between the ones that were tried: nobody knows what a model does beyond them.
  // Programs that were saved by older versions have no limits.
  int64_t least = 0;
  int64_t most = kAnySize;
  // Distance of the sizes between that are allowed, counted from `least`: if only multiples of seven were tried, a
  // model that pads to seven did nothing else. Programs that were saved by older versions have 1.
  int64_t step = 1;
  static constexpr int64_t kAnySize = std::numeric_limits<int64_t>::max();

  bool Limited() const { return least > 0 || most != kAnySize; }
  bool Has(int64_t size) const { return size >= least && size <= most && (size - least) % step == 0; }
};

// A call of a module that has returned, where the front end saw it.
struct RecordedReturn {
  std::string module_path;
  int end = 0;              // how many calls had run by then
  std::vector<int> values;  // in order; -1: a tensor that is no value of the program
};

struct RecordedProgram {
  std::string libtorch;  // the version that it was recorded with, "1.13.1"; empty: not known
  std::vector<RecordedValue> values;
  std::vector<RecordedStorage> storages;
  std::vector<RecordedCall> calls;  // in the order in which they ran, which is a topological order
  std::vector<RecordedGuard> guards;
  std::vector<CodePlace> places;
  std::vector<RecordedInput> inputs;
  Structure output;                       // tensors are values of the program
  std::vector<int> output_versions;       // for each tensor of `output`: the version of its storage at the end
  std::vector<std::string> module_paths;  // of all modules of the model
  std::vector<RecordedReturn> returns;    // in the order in which the modules returned; ascending by end
  std::vector<FreeDimension> free;        // learned; empty: sizes are those of the recording
  std::vector<SizeRelation> sizes;        // learned; ascending by call, those of constants first
};

// The call's position as errors and reports tell it.
Position PositionOf(const RecordedProgram& program, int call);
// "it was recorded with LibTorch 2.14.1, and this is LibTorch 1.13.1"; empty where both are of one minor version, or
// the program does not say.
std::string OtherLibTorch(const RecordedProgram& program);
// "linear(f32[2, 3], f32[4, 3], f32[4]) -> f32[2, 4]".
std::string DescribeCall(const RecordedProgram& program, int call);
// "f32[2, 3]".
std::string DescribeValue(const RecordedValue& value);
// "dimension 0 of x".
std::string DescribeDimension(const RecordedProgram& program, int input, int dim);
// "sizes from 1 to 9 were tried", "sizes from 4 to 12, 4 apart, were tried": what the limits of a free dimension are.
std::string DescribeLimits(const FreeDimension& dimension);
// The generators that calls were given, which a replay draws from, too; one for each time that one was given.
std::vector<at::Generator> GivenGenerators(const RecordedProgram& program);
// The number of the value of that name. Throws NotFound.
int FindValue(const RecordedProgram& program, const std::string& name);
// Returns the calls that have to run before this one so that it reads what it read, ascending and without repetition:
// those that made the values it uses and those that made the versions of their storages.
std::vector<int> Dependencies(const RecordedProgram& program, int call);
// Returns the producer of a use: the call that last wrote the elements, or the call that made the value if none wrote
// since; -1: the caller or the model.
int Producer(const RecordedProgram& program, const TensorUse& use);

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_RECORDED_PROGRAM_H_
