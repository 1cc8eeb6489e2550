#include "c_api/callback_map.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "c_api/bodies.h"

namespace addend::c_api {
namespace {

// A tensor as the map of a rule knows it: what its rows are like.
struct RowsLike {
  explicit RowsLike(const at::Tensor& tensor) : shape(tensor.sizes()), options(tensor.options().requires_grad(false)) {}

  at::DimVector Sizes(int64_t count) const {
    at::DimVector sizes = {count};
    sizes.append(shape.begin(), shape.end());
    return sizes;
  }

  at::DimVector shape;
  at::TensorOptions options;
};

// The map of a rule: rows go out and come back as tensors.
class CallbackMap : public LinearMap {
 public:
  CallbackMap(const std::string& op, std::shared_ptr<const Callbacks<addend_map_callbacks>> map,
              std::vector<RowsLike> inputs, RowsLike output)
      : who_(absl::StrCat("the map of the rule for ", op)),
        map_(std::move(map)),
        inputs_(std::move(inputs)),
        output_(std::move(output)) {}

  Rows Forward(const Rows& rows) const override {
    std::vector<std::unique_ptr<Scoped<addend_tensor>>> owners;
    std::vector<const addend_tensor*> handles;
    for (const at::Tensor& tensor : rows) {
      owners.push_back(std::make_unique<Scoped<addend_tensor>>(TensorBody(tensor.detach())));
      handles.push_back(owners.back()->get());
    }
    addend_tensor* out = nullptr;
    const int32_t answer = map_->table.forward(map_->table.payload, handles.data(), handles.size(), &out);
    return Taken(answer, {out}, {output_}, rows.at(0).size(0));
  }

  Rows Transpose(const Rows& cotangents) const override {
    Rows rows;
    for (const at::Tensor& cotangent : cotangents) {
      rows.push_back(cotangent.defined() ? cotangent.unsqueeze(0) : cotangent);
    }
    Rows back = TransposeRows(rows);
    for (at::Tensor& tensor : back) tensor = tensor.select(0, 0);
    return back;
  }

  Rows TransposeRows(const Rows& cotangents) const override {
    if (map_->table.transpose == nullptr) {
      throw Unimplemented(absl::StrCat(who_, " has no transpose, which going backward and attributing need: set ",
                                       "`transpose` of addend_map_callbacks"));
    }
    const at::Tensor& cotangent = cotangents.at(0);
    const Scoped<addend_tensor> shown(TensorBody(cotangent.defined() ? cotangent.detach() : ZerosFor(cotangents)));
    std::vector<addend_tensor*> out(inputs_.size(), nullptr);
    const int32_t answer = map_->table.transpose(map_->table.payload, shown.get(), out.data(), out.size());
    return Taken(answer, out, inputs_, (*shown).tensor.size(0));
  }

 private:
  // The other outputs of an operator carry no rows of the map, but may have cotangents.
  at::Tensor ZerosFor(const Rows& cotangents) const {
    const auto first = std::find_if(cotangents.begin(), cotangents.end(), [](const auto& g) { return g.defined(); });
    if (first == cotangents.end()) throw Internal("there is no cotangent to transpose");
    return at::zeros(output_.Sizes(first->size(0)), output_.options);
  }

  // Checks the tensors that a callback gave, takes them as rows, and releases their handles.
  Rows Taken(int32_t answer, const std::vector<addend_tensor*>& out, const std::vector<RowsLike>& like,
             int64_t count) const {
    using Owner = std::unique_ptr<addend_tensor, void (*)(addend_tensor*)>;
    std::vector<Owner> owners;
    for (addend_tensor* tensor : out) owners.emplace_back(tensor, addend_tensor_release);
    RequireZero(answer, who_);
    Rows rows;
    for (size_t k = 0; k < out.size(); ++k) {
      const at::Tensor given = Get<addend_tensor>(out[k], "out_rows").tensor;
      const at::DimVector expected = like[k].Sizes(count);
      if (given.sizes() != at::IntArrayRef(expected)) {
        throw InvalidArgument(absl::StrCat(who_, " gives rows of shape [", absl::StrJoin(given.sizes(), ", "),
                                           "], not [", absl::StrJoin(expected, ", "), "]"));
      }
      rows.push_back(given.to(like[k].options));
    }
    return rows;
  }

  std::string who_;
  std::shared_ptr<const Callbacks<addend_map_callbacks>> map_;
  std::vector<RowsLike> inputs_;
  RowsLike output_;
};

}  // namespace

void RequireZero(int32_t answer, const std::string& who) {
  if (answer == ADDEND_CALLBACK_OK) return;
  if (answer == ADDEND_CALLBACK_DECLINE) throw Unimplemented(absl::StrCat(who, " does not cover this call"));
  SetCallbackNumber(answer);
  throw Error(absl::StatusCode::kUnknown, absl::StrCat(who, " returned ", answer));
}

std::shared_ptr<const LinearMap> MakeCallbackMap(const std::string& op,
                                                 std::shared_ptr<const Callbacks<addend_map_callbacks>> map,
                                                 const std::vector<at::Tensor>& inputs, const at::Tensor& output) {
  std::vector<RowsLike> like(inputs.begin(), inputs.end());
  return std::make_shared<CallbackMap>(op, std::move(map), std::move(like), RowsLike(output));
}

}  // namespace addend::c_api
