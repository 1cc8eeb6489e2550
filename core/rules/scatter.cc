// Writing elements by index where several may meet: they are added, averaged, multiplied, or the largest is taken.
// Indices are plain: what is written where is taken from the value.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cumprod.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/index.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/rules/element_map.h"
#include "core/rules/families.h"
#include "core/rules/groups.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

// self, and the elements `numbers` of the operand `source_argument` ("": a number), which go to the elements
// `targets` of self.
Groups Written(const RuleCall& call, std::string_view source_argument, const at::Tensor& targets,
               const at::Tensor& numbers, bool include_self = true) {
  const at::Tensor& self = call.Require("self").value;
  Groups groups;
  groups.operands = {call.OperandAt("self")};
  groups.outputs = self.numel();
  groups.elements = groups.outputs;
  if (!source_argument.empty()) {
    groups.operands.push_back(call.OperandAt(source_argument));
    groups.elements += call.Require(source_argument).value.numel();
  }
  const at::Tensor target = targets.reshape({-1});
  at::Tensor own = at::arange(groups.outputs, target.options());
  if (!include_self) own = own.masked_select(at::bincount(target, {}, groups.outputs).eq(0));
  groups.target = at::cat({own, target}, 0);
  groups.source = at::cat({own, numbers.reshape({-1})}, 0);
  return groups;
}

// Which element of self each index of scatter means, as gather would read it.
at::Tensor Gathered(const RuleCall& call) {
  const at::Tensor& self = call.Require("self").value;
  return at::gather(ElementNumbers(self), call.Int("dim", 0), call.Require("index").value);
}

// The part of the source that scatter reads: as large as the index, from the first element on.
at::Tensor PartRead(const RuleCall& call) {
  const at::Tensor& index = call.Require("index").value;
  at::Tensor numbers = ElementNumbers(call.Require("src").value, call.Require("self").value.numel());
  if (index.dim() != numbers.dim()) return numbers.expand_as(index);  // a number beside an index of one element
  for (int64_t d = 0; d < index.dim(); ++d) numbers = numbers.narrow(d, 0, index.size(d));
  return numbers;
}

RuleResult ScatterAdd(const RuleCall& call) {
  return ReduceGroups(call, Written(call, "src", Gathered(call), PartRead(call)), "sum");
}

// scatter.reduce(self, dim, index, src, reduce)
RuleResult ScatterAnd(const RuleCall& call) {
  return ReduceGroups(call, Written(call, "src", Gathered(call), PartRead(call)), call.String("reduce", ""));
}

// scatter.value_reduce(self, dim, index, value, reduce)
RuleResult ScatterNumberAnd(const RuleCall& call) {
  const at::Tensor targets = Gathered(call);
  Groups groups = Written(call, "", targets, at::full_like(targets, call.Require("self").value.numel()));
  groups.constant = call.Double("value", 0);
  return ReduceGroups(call, groups, call.String("reduce", ""));
}

// scatter_reduce.two(self, dim, index, src, reduce, include_self)
RuleResult ScatterReduce(const RuleCall& call) {
  return ReduceGroups(call, Written(call, "src", Gathered(call), PartRead(call), call.Bool("include_self", true)),
                      call.String("reduce", ""));
}

// Which element of self each element of the source of index_add and index_reduce is written to.
at::Tensor Selected(const RuleCall& call) {
  return at::index_select(ElementNumbers(call.Require("self").value), call.Int("dim", 0), call.Require("index").value);
}

at::Tensor AllOf(const RuleCall& call, std::string_view argument) {
  return ElementNumbers(call.Require(argument).value, call.Require("self").value.numel());
}

// index_add(self, dim, index, source, alpha)
RuleResult IndexAdd(const RuleCall& call) {
  const int self = call.OperandAt("self");
  const Groups groups = Written(call, "source", Selected(call), AllOf(call, "source"));
  const double alpha = call.Double("alpha", 1);
  at::Tensor weight;
  if (alpha != 1) {
    weight = at::full(groups.source.sizes(), alpha, call.outputs[0].value.options());
    weight.narrow(0, 0, call.operands[self].value.numel()).fill_(1);
  }
  return WeightedScatter(call, Kind::kAffine, groups.operands, groups.source, groups.target, weight);
}

// index_reduce(self, dim, index, source, reduce, include_self)
RuleResult IndexReduce(const RuleCall& call) {
  return ReduceGroups(call,
                      Written(call, "source", Selected(call), AllOf(call, "source"), call.Bool("include_self", true)),
                      call.String("reduce", ""));
}

// put(self, index, source, accumulate)
RuleResult Put(const RuleCall& call) {
  if (!call.Bool("accumulate", false)) return Rearrangement(call, Kind::kAffine);
  const at::Tensor& index = call.Require("index").value;
  const at::Tensor target = at::where(index.lt(0), index + call.Require("self").value.numel(), index);
  return ReduceGroups(call, Written(call, "source", target, AllOf(call, "source")), "sum");
}

// index_put(self, indices, values, accumulate): the recorded list says which dimensions have an index.
RuleResult IndexPut(const RuleCall& call) {
  if (!call.Bool("accumulate", false)) return Rearrangement(call, Kind::kAffine);
  c10::List<Optional<at::Tensor>> indices;
  size_t next = 0;
  while (next < call.operands.size() && call.operands[next].argument != call.At("indices")) ++next;
  for (const int64_t present : call.Ints("indices")) {
    indices.push_back(present != 0 ? Optional<at::Tensor>(call.operands[next++].value) : Optional<at::Tensor>());
  }
  const at::Tensor targets = at::index(ElementNumbers(call.Require("self").value), indices);
  return ReduceGroups(call, Written(call, "values", targets, AllOf(call, "values").expand_as(targets)), "sum");
}

// segment_reduce(data, reduce, lengths, indices, offsets, axis, unsafe, initial): data is cut along an axis into
// segments, in front of which further dimensions may lie, each with segments of its own.
RuleResult SegmentReduce(const RuleCall& call) {
  const int data = call.OperandAt("data");
  const at::Tensor& x = call.operands[data].value;
  const int64_t rank = x.dim();
  const int64_t axis = call.Int("axis", 0) < 0 ? call.Int("axis", 0) + rank : call.Int("axis", 0);
  at::Tensor ends;   // [*front, segments]: where each segment ends
  at::Tensor begin;  // [*front, 1]: where the first one begins
  if (call.Find("lengths") != nullptr) {
    ends = call.Require("lengths").value.to(at::kLong).cumsum(-1);
    begin = at::zeros_like(ends.narrow(-1, 0, 1));
  } else {
    const at::Tensor& offsets = call.Require("offsets").value;
    ends = offsets.to(at::kLong).narrow(-1, 1, offsets.size(-1) - 1);
    begin = offsets.to(at::kLong).narrow(-1, 0, 1);
  }
  const int64_t length = x.size(axis);
  const at::Tensor& output = call.outputs[0].value;
  const int64_t segments = output.size(axis);
  int64_t front = 1;
  for (int64_t d = 0; d < axis; ++d) front *= x.size(d);
  const int64_t behind = output.numel() == 0 ? 1 : output.numel() / (front * segments);
  // The segment of each position along the axis, [front, length]; positions behind the last segment have none.
  const at::Tensor position = at::arange(length, ends.options()).expand({front, length}).contiguous();
  const at::Tensor segment = at::searchsorted(ends.reshape({front, segments}).contiguous(), position, false, true);
  const at::Tensor first = at::arange(front, ends.options()).unsqueeze(1) * segments;
  const at::Tensor target =
      ((first + segment).unsqueeze(2) * behind + at::arange(behind, ends.options())).reshape({-1});
  const at::Tensor within = segment.lt(segments).logical_and_(position.ge(begin.reshape({front, 1})));
  const at::Tensor covered = within.unsqueeze(2).expand({front, length, behind}).reshape({-1});
  Groups groups;
  groups.operands = {data};
  groups.outputs = output.numel();
  groups.elements = x.numel();
  groups.target = target.masked_select(covered);
  groups.source = ElementNumbers(x).reshape({-1}).masked_select(covered);
  const std::string how = call.String("reduce", "");
  // The initial value is one more member of each group. It has no part in the mean's divisor.
  if (!call.IsNone("initial") && how != "sum" && how != "mean") {
    groups.constant = call.Double("initial", 0);
    groups.target = at::cat({groups.target, at::arange(groups.outputs, ends.options())}, 0);
    groups.source = at::cat({groups.source, at::full({groups.outputs}, groups.elements, ends.options())}, 0);
  }
  RuleResult result = ReduceGroups(call, groups, how);
  if (result.kind == Kind::kLinear && !call.IsNone("initial")) result.kind = Kind::kAffine;
  return result;
}

}  // namespace

void RegisterScatter(Registry& registry) {
  registry.Register({"aten::scatter_add", Kind::kAffine, ScatterAdd});
  registry.Register({"aten::scatter.reduce", Kind::kAffine, ScatterAnd});
  registry.Register({"aten::scatter.value_reduce", Kind::kAffine, ScatterNumberAnd});
  registry.Register({"aten::scatter_reduce", Kind::kAffine, ScatterReduce});
  registry.Register({"aten::index_add", Kind::kAffine, IndexAdd});
  registry.Register({"aten::index_reduce", Kind::kAffine, IndexReduce});
  registry.Register({"aten::put", Kind::kAffine, Put});
  registry.Register({"aten::index_put", Kind::kAffine, IndexPut});
  registry.Register({"aten::_index_put_impl", Kind::kAffine, IndexPut});
  registry.Register({"aten::_unsafe_index_put", Kind::kAffine, IndexPut});
  registry.Register({"aten::segment_reduce", Kind::kLinear, SegmentReduce});
}

}  // namespace addend
