// Operators that only put elements elsewhere. Each is asked itself which element it puts where, see Rearrangement. The
// most used ones (cat, gather, index, repeat, flip) have rules of their own in shape.cc and indexing.cc.
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/intercept/operator.h"
#include "core/rules/element_map.h"
#include "core/rules/families.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

RuleResult Linear(const RuleCall& call) { return Rearrangement(call, Kind::kLinear); }
// Some elements may be constants: a number that is filled in, or those of a plain operand.
RuleResult Affine(const RuleCall& call) { return Rearrangement(call, Kind::kAffine); }

// as_strided counts from the beginning of the memory, where a view may have other elements than its own.
RuleResult Strided(const RuleCall& call) {
  const at::Tensor& self = call.Require("self").value;
  if (self.storage_offset() != 0 || !self.is_non_overlapping_and_dense()) {
    throw Unimplemented(call.name + " of a part of a tensor");
  }
  return Affine(call);
}

// Whether this LibTorch has an operator of that name, whatever its overloads.
bool Exists(const std::string& name) {
  const size_t dot = name.find('.');
  return Operator::Find(name.substr(0, dot), dot == std::string::npos ? "" : name.substr(dot + 1)).has_value();
}

}  // namespace

void RegisterRearrangement(Registry& registry) {
  for (const char* name : {
           "aten::take",
           "aten::masked_select",
           "aten::diag",
           "aten::diag_embed",
           "aten::rot90",
           "aten::block_diag",
           "aten::pixel_unshuffle",
           "aten::channel_shuffle",
           "aten::native_channel_shuffle",
           "aten::im2col",
           "aten::max_unpool2d",
           "aten::max_unpool3d",
           "aten::narrow_copy",
           "aten::_pack_padded_sequence",
       }) {
    registry.Register({name, Kind::kLinear, Linear});
  }
  for (const char* name : {
           "aten::scatter.src",
           "aten::scatter.value",
           "aten::index_copy",
           "aten::index_fill",
           "aten::select_scatter",
           "aten::slice_scatter",
           "aten::diagonal_scatter",
       }) {
    registry.Register({name, Kind::kAffine, Affine});
  }
  registry.Register(Rule{"aten::pixel_shuffle", Kind::kLinear, Linear}.KeepsMarks());
  registry.Register(Rule{"aten::masked_scatter", Kind::kAffine, Affine}.KeepsMarks());
  registry.Register({"aten::as_strided_scatter", Kind::kAffine, Strided});
  registry.Register({"aten::as_strided_copy", Kind::kLinear, Strided});
  // The forms of views that copy.
  for (const char* name :
       {"aten::view_copy", "aten::_reshape_alias_copy", "aten::permute_copy", "aten::expand_copy",
        "aten::select_copy.int", "aten::slice_copy.Tensor", "aten::t_copy", "aten::transpose_copy.int",
        "aten::unsqueeze_copy", "aten::squeeze_copy", "aten::squeeze_copy.dim", "aten::diagonal_copy",
        "aten::detach_copy", "aten::alias_copy", "aten::unfold_copy", "aten::split_copy.Tensor",
        "aten::split_with_sizes_copy", "aten::unbind_copy.int", "aten::lift_fresh_copy"}) {
    if (Exists(name)) registry.Register(Rule{name, Kind::kLinear, Linear}.MadeOfSizes());
  }
}

}  // namespace addend
