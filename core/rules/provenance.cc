// Where results come from: what Policy::freeze goes by (see Freeze in core/base/policy.h).
//
// Note [Provenance]
// A result of softmax is "attention", one of sqrt, rsqrt or a norm is "normalizer", one of reciprocal (or of a plain
// numerator over it) "denominator", one of sigmoid is "gate", and so is
// one of the functions that multiply their argument by a gate (silu, gelu): where such a result is a factor of
// something else, as in SwiGLU, it gates it. Views have the mark of their storage; the operators below hand on the mark
// that all their decomposed operands share: copies, rearrangements, masks, dropout, scaling, plain addends (a
// normalizer's epsilon, 1 - gate). What is marked and frozen is used as a plain factor by products, quotients and
// matrix products.
#include <string>
#include <utility>

#include "core/rules/families.h"

namespace addend {
namespace {

// `name`: without overload, for all overloads.
void Mark(Registry& registry, const std::string& name, uint32_t mark, bool keeps) {
  for (const Rule* rule : registry.All()) {
    if (rule->name.substr(0, rule->name.find('.')) != name) continue;
    Rule marked = *rule;
    marked.mark |= mark;
    marked.keeps_marks = marked.keeps_marks || keeps;
    registry.Register(std::move(marked));
  }
}

}  // namespace

void MarkProvenance(Registry& registry) {
  for (const char* name : {"aten::softmax", "aten::_softmax", "aten::_safe_softmax"}) {
    Mark(registry, name, kFreezeAttention, false);
  }
  for (const char* name : {"aten::sqrt", "aten::rsqrt", "aten::std", "aten::std_mean", "aten::norm",
                           "aten::linalg_norm", "aten::linalg_vector_norm", "aten::frobenius_norm"}) {
    Mark(registry, name, kFreezeNormalizer, false);
  }
  Mark(registry, "aten::reciprocal", kFreezeDenominator, false);
  for (const char* name :
       {"aten::sigmoid", "aten::hardsigmoid", "aten::silu", "aten::hardswish", "aten::gelu", "aten::mish"}) {
    Mark(registry, name, kFreezeGate, false);
  }
  for (const char* name :
       {// copies and rearrangements
        "aten::clone", "aten::_to_copy", "aten::contiguous", "aten::copy", "aten::_unsafe_view", "aten::_reshape_alias",
        "aten::_reshape_copy", "aten::lift_fresh", "aten::repeat", "aten::repeat_interleave", "aten::flip",
        "aten::roll", "aten::cat", "aten::stack", "aten::index", "aten::index_select", "aten::gather",
        "aten::take_along_dim", "aten::constant_pad_nd", "aten::pixel_shuffle",
        // masks and dropout
        "aten::masked_fill", "aten::masked_scatter", "aten::where", "aten::tril", "aten::triu", "aten::native_dropout",
        "aten::nan_to_num",
        // scaling, plain addends, bounds against division by zero
        "aten::mul", "aten::div", "aten::neg", "aten::reciprocal", "aten::add", "aten::sub", "aten::rsub",
        "aten::clamp", "aten::clamp_min", "aten::maximum"}) {
    Mark(registry, name, kFreezeNothing, true);
  }
}

}  // namespace addend
