// The calls of one traced run: every operator call with its operands as (storage, version, geometry).
//
// This is what a tracer follows and a linearization is made of. It lives as long as they do; what is saved, replayed
// and exported is a program, see recorded_program.h.
//
// Note [Storages, not tensors]
// A tensor object has no stable identity: LibTorch shallow-copies, resizes and re-wraps tensors. A model reads and
// writes storages. An operand is therefore a storage id, the version that the storage had at the call, and the geometry
// at the call. Views need no record of their own, and a write through a view, into a buffer or by out= follows from
// geometry.
#ifndef ADDEND_CORE_PROGRAM_TRACED_CALLS_H_
#define ADDEND_CORE_PROGRAM_TRACED_CALLS_H_

#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>
#include <c10/util/SmallVector.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/intercept/operator.h"
#include "core/program/call_text.h"
#include "core/program/geometry.h"

namespace addend {

struct Operand {
  int storage = -1;         // -1: an undefined tensor
  int version = 0;          // counts the writes to the storage
  int16_t argument = -1;    // position in the schema; for outputs the position among the returns
  bool decomposed = false;  // the storage carries rows (it depends on a decomposed input)
  bool labelled = false;    // integers or booleans that depend on a decomposed input; see Note [Ids] in core/linearize
  bool written = false;     // the call writes it
  // On the baseline the call reads the reference in its place, not the value; set when a traced call has run.
  bool on_baseline = false;
  bool conjugated = false;      // its elements are the conjugates of what is stored, lazily
  bool negated = false;         // its elements are the negatives of what is stored, lazily
  bool wrapped_number = false;  // a number that LibTorch wrapped: it does not take part in type promotion
  bool requires_grad = false;   // matmul multiplies in another way, with other last bits, where its second operand does
  at::ScalarType dtype = at::ScalarType::Undefined;  // may differ from that of the storage; see SameNumbers
  Geometry geometry;                                 // in elements of `dtype`

  // True if both are the same elements of the same storage, read in the same way.
  bool SamePlace(const Operand& other) const { return storage == other.storage && SameLayout(other); }
  // True if both have the same dtype and geometry and are read in the same way, in any storages.
  bool SameLayout(const Operand& other) const {
    return dtype == other.dtype && conjugated == other.conjugated && negated == other.negated &&
           geometry == other.geometry;
  }
};

// One version of a storage: its id, and the version.
using VersionId = std::pair<int, int>;
inline VersionId VersionIdOf(const Operand& operand) { return {operand.storage, operand.version}; }

struct Call;

// A result of a rewrite that was replaced by the rewritten operator's own numbers.
struct Adoption {
  std::shared_ptr<const Call> whole;  // the rewritten operator, as it was called
  size_t result = 0;                  // which tensor of its results
  Operand place;                      // where the rewrite's result lies
};

struct Call {
  explicit Call(const Operator& called) : op(called) {}

  Operator op;
  int64_t index = 0;
  // The operator of the model that this call is, or was expanded from: the number of its call in a RecordedProgram of
  // the same run.
  int64_t program_call = 0;
  int16_t depth = 0;     // how many composite operators were expanded around it
  bool is_view = false;  // every result aliases an argument and nothing is written
  bool draws = false;    // from a generator
  // Set on the calls of a rewrite that made its results, which were replaced by the rewritten operator's own numbers
  // (see Note [Rewrites] in core/rules/rewrite.h): how far those may be off, relative to the largest; 0: not set.
  double adopted = 0;
  std::vector<Adoption> adoptions;        // what was replaced
  bool resized_output = false;            // out= into a tensor that the call gave a new size: nothing of it was kept
  std::vector<c10::IValue> arguments;     // as called, tensors replaced by None (they are operands)
  c10::SmallVector<Operand, 4> operands;  // tensor arguments in schema order, lists flattened
  c10::SmallVector<Operand, 2> outputs;   // what was written, or else what was returned
  Position position;
  // The call that the model made, where this one stands in its place for linearizations: it reads what several calls
  // read and gives what the last of them gives. Null: it is as the model made it.
  std::shared_ptr<const Call> made;
  const Call& AsMade() const { return made != nullptr ? *made : *this; }

  // True when an operand carries rows or labels.
  bool Traced() const;
};

// Whether an operand of a call has rows.
bool ReadsRows(const Call& call);
// Whether a call gives floating-point or complex numbers.
bool GivesNumbers(const Call& call);

struct StorageInfo {
  int64_t numel = 0;  // in elements of `dtype`, which the first tensor seen had
  at::ScalarType dtype = at::ScalarType::Undefined;
  int versions = 1;
  at::Device device = at::kCPU;
  std::string name;    // parameter, buffer or input that owns it; may be empty
  bool inner = false;  // the model was given it or an operator made it; see Note [Differentiation]
};

// True where the operand is the storage from its start to its end, each element as it is stored.
bool CoversWhole(const Operand& operand, const StorageInfo& storage);

// A call of a module that has returned, where somebody told of it.
struct ModuleReturn {
  std::string module_path;
  int64_t end = 0;               // how many calls had been recorded by then
  std::vector<Operand> tensors;  // in order; those that no operator has met have no storage
};

struct TracedCalls {
  std::vector<Call> calls;
  std::vector<StorageInfo> storages;
  std::vector<ModuleReturn> returns;  // in the order in which they returned
};

// One line: "add(f32[2, 3], f32[3], 1) -> f32[2, 3]".
std::string DescribeCall(const Call& call);

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_TRACED_CALLS_H_
