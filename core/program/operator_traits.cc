#include "core/program/operator_traits.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <ATen/core/jit_type.h>

#include <algorithm>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/program/traced_calls.h"

namespace addend {
namespace {

using Names = absl::flat_hash_set<std::string>;

ArgumentKind KindOf(const c10::TypePtr& type) {
  switch (type->kind()) {
    case c10::TypeKind::TensorType:
      return ArgumentKind::kTensor;
    case c10::TypeKind::OptionalType:
      return KindOf(type->expectRef<c10::OptionalType>().getElementType());
    case c10::TypeKind::ListType:
      return KindOf(type->expectRef<c10::ListType>().getElementType()) == ArgumentKind::kTensor
                 ? ArgumentKind::kTensorList
                 : ArgumentKind::kPlain;
    default:
      return ArgumentKind::kPlain;
  }
}

// The names below are without the underscore of in-place forms.

bool GeometryOnly(const std::string& name) {
  static const auto& names = *new Names{"aten::t",          "aten::transpose", "aten::swapaxes",      "aten::swapdims",
                                        "aten::unsqueeze",  "aten::set_data",  "aten::squeeze",       "aten::detach",
                                        "aten::as_strided", "aten::rename",    "aten::requires_grad", "aten::set"};
  return names.contains(name);
}

bool Overwrites(const std::string& name) {
  static const auto& names =
      *new Names{"aten::copy",      "aten::zero",   "aten::fill",       "aten::normal",    "aten::uniform",
                 "aten::bernoulli", "aten::random", "aten::log_normal", "aten::geometric", "aten::exponential",
                 "aten::cauchy",    "aten::resize", "aten::resize_as",  "aten::set",       "aten::eye"};
  return names.contains(name);
}

bool Property(const std::string& name) {
  static const auto& names = *new Names{"aten::size",
                                        "aten::sym_size",
                                        "aten::stride",
                                        "aten::sym_stride",
                                        "aten::numel",
                                        "aten::sym_numel",
                                        "aten::dim",
                                        "aten::storage_offset",
                                        "aten::sym_storage_offset",
                                        "aten::is_floating_point",
                                        "aten::is_complex",
                                        "aten::is_signed",
                                        "aten::is_same_size",
                                        "aten::is_contiguous",
                                        "aten::sym_is_contiguous",
                                        "aten::is_set_to",
                                        "aten::_has_same_storage_numel",
                                        "aten::_use_cudnn_ctc_loss",
                                        "aten::_fused_sdp_choice",
                                        "aten::is_conj",
                                        "aten::is_neg",
                                        "aten::is_inference",
                                        "aten::is_leaf",
                                        "aten::is_pinned",
                                        "aten::is_distributed",
                                        "aten::_is_zerotensor",
                                        "aten::retains_grad",
                                        "aten::output_nr",
                                        "aten::_version",
                                        "aten::result_type",
                                        "aten::can_cast",
                                        "aten::promote_types",
                                        "aten::_has_compatible_shallow_copy_type",
                                        "aten::qscheme"};
  return names.contains(name);
}

bool DataShape(const std::string& name, const std::string& overload) {
  static const auto& names = *new Names{"aten::nonzero",
                                        "aten::nonzero_numpy",
                                        "aten::argwhere",
                                        "aten::masked_select",
                                        "aten::_unique",
                                        "aten::_unique2",
                                        "aten::unique_dim",
                                        "aten::unique_consecutive",
                                        "aten::unique_dim_consecutive",
                                        "aten::bincount",
                                        "aten::one_hot",
                                        "aten::_pack_padded_sequence",
                                        "aten::_pad_packed_sequence",
                                        "torchvision::nms"};
  if (name == "aten::where") return overload.empty();
  if (name == "aten::repeat_interleave") return overload != "self_int";
  return names.contains(name) || (name == "aten::tensor_split" && absl::StrContains(overload, "tensor"));
}

// Whether of this argument only the sizes or the dtype are read.
bool Shown(const std::string& name, const std::string& argument) {
  static const auto& names = *new Names{"aten::expand_as", "aten::view_as",   "aten::reshape_as",
                                        "aten::type_as",   "aten::resize_as", "aten::to"};
  return (argument == "other" || argument == "the_template") && names.contains(name);
}

bool Has(const c10::FunctionSchema& schema, const std::string& argument) {
  return schema.argumentIndexWithName(argument).has_value();
}

bool IsTagged(const c10::FunctionSchema& schema, at::Tag tag) {
  const auto handle = c10::Dispatcher::singleton().findSchema({schema.name(), schema.overload_name()});
  return handle && handle->hasTag(tag);
}

}  // namespace

OperatorTraits::OperatorTraits(const c10::FunctionSchema& schema) {
  const std::string name = RuleName(schema.name());
  const std::string& full = schema.name();
  geometry_only = GeometryOnly(name);
  for (const c10::Argument& argument : schema.arguments()) {
    arguments.push_back(KindOf(argument.type()));
    const bool changed = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    written.push_back(changed);
    output.push_back(changed && argument.is_out());
    shown.push_back(Shown(name, argument.name()));
    writes |= changed;
    may_reshape |= changed && argument.is_out();
  }
  for (const c10::Argument& result : schema.returns()) {
    returns.push_back(KindOf(result.type()));
    gives_plain |= returns.back() == ArgumentKind::kPlain;
  }
  // Only in-place forms change where elements lie; transpose() has no written argument.
  geometry_only &= writes;
  resizes = writes && (absl::StartsWith(name, "aten::resize") || name == "aten::sparse_resize");
  may_reshape |= geometry_only || resizes;
  overwrites = Overwrites(name);
  allocates = absl::StartsWith(full, "aten::empty") || absl::StartsWith(full, "aten::new_empty") || resizes;
  metadata_only = allocates || absl::EndsWith(full, "_like") || absl::StartsWith(full, "aten::new_") ||
                  full == "aten::_shape_as_tensor";
  detaches = full == "aten::detach_";
  property = Property(name);
  random = Has(schema, "generator") || IsTagged(schema, at::Tag::nondeterministic_seeded);
  if (const auto beta = schema.argumentIndexWithName("beta"); beta && !writes && Has(schema, "alpha")) {
    beta_ = static_cast<int16_t>(*beta);
  }
  for (const char* flag : {"train", "training"}) {
    if (const auto found = schema.argumentIndexWithName(flag)) train_ = static_cast<int16_t>(*found);
  }
  const bool drops = absl::StrContains(name, "dropout");
  for (const char* probability : {"dropout", "dropout_p", "p"}) {
    const auto found = schema.argumentIndexWithName(probability);
    if (!drops && absl::string_view(probability) == "p") continue;
    if (!found || schema.arguments()[*found].type()->kind() != c10::TypeKind::FloatType) continue;
    probability_ = static_cast<int16_t>(*found);
    random = true;
  }
  // Find what a GuardTable guards of a call that reads data. If one of LibTorch's operators also gives tensors, the
  // numbers are sizes.
  bool reads_elements = false;
  for (size_t a = 0; a < arguments.size(); ++a) {
    const bool only_written = written[a] && (overwrites || output[a]);
    reads_elements |= arguments[a] != ArgumentKind::kPlain && !shown[a] && !only_written;
  }
  const bool plain_alone =
      std::all_of(returns.begin(), returns.end(), [](ArgumentKind kind) { return kind == ArgumentKind::kPlain; });
  reads_number = gives_plain && reads_elements && !property && !metadata_only &&
                 (plain_alone || !absl::StartsWith(full, "aten::"));
  data_shape = DataShape(name, schema.overload_name());
  for (const char* size : {"num_classes", "output_size"}) {
    const auto found = schema.argumentIndexWithName(size);
    if (data_shape && found) given_size_ = static_cast<int16_t>(*found);
  }
  data_shape_bool = name == "aten::index" || name == "aten::_index";
  lengths_apart = name == "aten::_pack_padded_sequence" || name == "aten::_pad_packed_sequence";
  const bool not_first = data_shape_bool || name == "aten::masked_select" || name == "aten::tensor_split" ||
                         lengths_apart || (name == "aten::repeat_interleave" && Has(schema, "self"));
  data_shape_from = not_first ? 1 : 0;
  // Normalizations in training update what their schemas call plain arguments.
  for (const char* flag : {"training", "train", "use_input_stats"}) {
    const auto flagged = schema.argumentIndexWithName(flag);
    if (!flagged || writes) continue;
    for (const char* statistic : {"running_mean", "running_var"}) {
      const auto found = schema.argumentIndexWithName(statistic);
      if (found) statistics_.push_back(static_cast<int16_t>(*found));
    }
    if (!statistics_.empty()) statistics_flag_ = static_cast<int16_t>(*flagged);
  }
  if (const auto noise = schema.argumentIndexWithName("noise"); noise && absl::StrContains(name, "rrelu")) {
    const auto flagged = schema.argumentIndexWithName("training");
    if (flagged && !written[*noise]) {
      statistics_.push_back(static_cast<int16_t>(*noise));
      statistics_flag_ = static_cast<int16_t>(*flagged);
    }
  }
}

c10::ArrayRef<int16_t> OperatorTraits::StatisticsWritten(c10::ArrayRef<c10::IValue> values) const {
  const bool updates = statistics_flag_ >= 0 && values[statistics_flag_].isBool() && values[statistics_flag_].toBool();
  return updates ? c10::ArrayRef<int16_t>(statistics_) : c10::ArrayRef<int16_t>();
}

bool OperatorTraits::Draws(c10::ArrayRef<c10::IValue> values) const {
  if (!random) return false;
  if (train_ >= 0 && values[train_].isBool() && !values[train_].toBool()) return false;
  return probability_ < 0 || !values[probability_].isDouble() || values[probability_].toDouble() > 0;
}

bool OperatorTraits::LeavesFirst(c10::ArrayRef<c10::IValue> values) const {
  if (beta_ < 0) return false;
  const c10::IValue& beta = values[beta_];
  return (beta.isInt() && beta.toInt() == 0) || (beta.isDouble() && beta.toDouble() == 0);
}

bool OperatorTraits::SizesFromData(c10::ArrayRef<c10::IValue> values) const {
  if (!data_shape || given_size_ < 0) return data_shape;
  const c10::IValue& size = values[given_size_];
  return !size.isInt() || size.toInt() < 0;
}

}  // namespace addend
