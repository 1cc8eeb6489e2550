// Compositions: tensors written as a sum of components and a residual.
#ifndef ADDEND_CORE_COMPOSITION_COMPOSITION_H_
#define ADDEND_CORE_COMPOSITION_COMPOSITION_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/core/TensorOptions.h>

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/composition/call_options.h"

namespace at::indexing {
struct TensorIndex;
}

namespace addend {

class Composition;

// Facts about the operator that gave a composition.
struct Origin {
  at::Tensor value;     // what the operator computed, in its dtype; undefined: the recovery stands for it
  uint32_t marks = 0;   // bits of Freeze (policy.h): where the value comes from
  int64_t depth = 0;    // how many operators led to it: their rounding errors add up
  bool single = false;  // rounded as single precision is somewhere on the way, whatever the dtype
  bool plain = false;   // nothing of any input reaches it: the components are zero, the reference is the value
};

// A tensor, a composition, or nothing: an argument that may be either.
class TensorOrComposition {
 public:
  TensorOrComposition() = default;
  TensorOrComposition(at::Tensor tensor);               // NOLINT(google-explicit-constructor): stands for either
  TensorOrComposition(const Composition& composition);  // NOLINT(google-explicit-constructor)

  const std::shared_ptr<const Composition>& composition() const { return composition_; }
  const at::Tensor& tensor() const { return tensor_; }
  // The tensor, or the value of the composition.
  at::Tensor value() const;

 private:
  std::shared_ptr<const Composition> composition_;
  at::Tensor tensor_;
};

// A tensor of shape S as numc components and a residual, each of shape S. The residual is kept in two parts: the
// reference, which is the value if every component is zero, and the leftover, which is what could not be attributed to
// any component.
//
// A composition is a value: nothing changes it once it is made. Methods that end in an underscore make a new
// composition and put it into the variable that they are called on, as += does; other copies stay as they were. Copies
// share memory, also with the tensors that a composition was made from.
//
// Methods whose names begin with c_ act on components, all others on the tensor that the composition stands for. Those
// of the everyday operators (x.relu(), x.softmax(-1), x.view({2, 3}), generated from everyday_operators.txt) are
// defined in the library //core/eager; free functions and C++ operators for them are in composition_ops.h.
class Composition {
 public:
  // Components [numc, *S], reference S, leftover S; an undefined leftover is zeros. All floating-point or complex, of
  // one dtype and on one device. They are detached from autograd. Like all constructors here, throws InvalidArgument
  // that says what is wrong.
  Composition(const at::Tensor& components, const at::Tensor& reference, const at::Tensor& leftover = at::Tensor());

  // Makes a composition whose parts stay in autograd's graph, so that gradients pass through everything that is
  // computed from it.
  static Composition InGraph(const at::Tensor& components, const at::Tensor& reference,
                             const at::Tensor& leftover = at::Tensor());
  // Makes the result of an operator, with its parts in autograd's graph. Half types may have parts in float32.
  static Composition FromOperator(const at::Tensor& components, const at::Tensor& reference, const at::Tensor& leftover,
                                  Origin origin);

  static Composition Zeros(at::IntArrayRef shape, int64_t numc, const at::TensorOptions& options = {});
  // Zeros of the shape, the number of components, the dtype and the device of another composition.
  static Composition ZerosLike(const Composition& other);

  // Makes a composition from tensors of shape S, which become the components; the residual becomes the reference. An
  // undefined residual is zeros. Without parts numc is 0, and the residual must be defined.
  static Composition FromParts(const std::vector<at::Tensor>& parts, const at::Tensor& residual = at::Tensor());

  // Splits a value along dimensions, with one component for each position: component offset + i is value - baseline
  // where the index over `dims`, flattened with the last of them fastest, is i; it is zero elsewhere. The reference is
  // the baseline, which broadcasts to the value; undefined: zeros. Negative dims count from the end; without any dims
  // the whole value is one component. numc -1: no more components than needed.
  static Composition Diagonal(const at::Tensor& value, const std::vector<int64_t>& dims,
                              const at::Tensor& baseline = at::Tensor(), int64_t offset = 0, int64_t numc = -1);

  // Splits a value by labels, with one component for each label: component l is value - baseline where the label is l;
  // it is zero elsewhere. Labels are integers, and their shape is that of the value or of its leading dimensions:
  // elements along the other dimensions share a label (labels [batch, token] for a value [batch, token, feature]). A
  // label dimension of size 1 stands for all positions. Elements with the label -1 belong to no component: the
  // reference has their value, and the baseline elsewhere. numc -1: the largest label + 1.
  static Composition FromLabels(const at::Tensor& value, const at::Tensor& labels,
                                const at::Tensor& baseline = at::Tensor(), int64_t numc = -1);

  // ---- questions

  int64_t numc() const { return components_.size(0); }
  at::IntArrayRef sizes() const { return reference_.sizes(); }
  // Negative dimensions count from the end.
  int64_t size(int64_t dim) const { return reference_.size(dim); }
  int64_t dim() const { return reference_.dim(); }
  int64_t numel() const { return reference_.numel(); }
  // [numc, *S]
  at::IntArrayRef c_sizes() const { return components_.sizes(); }
  int64_t c_size(int64_t dim) const { return components_.size(dim); }
  // Elements of all components, and of the residual where that counts.
  int64_t c_numel(bool count_residual = false) const {
    return components_.numel() + (count_residual ? reference_.numel() : 0);
  }
  // The dtype of the value, in which operators compute. Parts of half types are float32 once an operator gave them.
  at::ScalarType dtype() const { return origin_.value.defined() ? origin_.value.scalar_type() : parts_dtype(); }
  at::ScalarType parts_dtype() const { return components_.scalar_type(); }
  at::Device device() const { return components_.device(); }
  bool is_cuda() const { return components_.is_cuda(); }
  bool requires_grad() const {
    return components_.requires_grad() || reference_.requires_grad() || leftover_.requires_grad();
  }

  const at::Tensor& components() const { return components_; }
  const at::Tensor& reference() const { return reference_; }
  const at::Tensor& leftover() const { return leftover_; }
  const Origin& origin() const { return origin_; }
  // reference + leftover.
  at::Tensor residual() const;
  // The sum of the components, plus the residual.
  at::Tensor recovery() const;
  // The tensor that the composition stands for: what an operator computed (the recovery equals it up to rounding), or
  // else the recovery. Conditions, comparisons and further operators read it.
  at::Tensor value() const;

  // ---- components

  // Throws InvalidArgument unless 0 <= index < numc().
  at::Tensor component(int64_t index) const;
  // for (const at::Tensor& component : composition)
  class Iterator {
   public:
    Iterator(const Composition* composition, int64_t index) : composition_(composition), index_(index) {}
    at::Tensor operator*() const { return composition_->component(index_); }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return index_ != other.index_; }

   private:
    const Composition* composition_;
    int64_t index_;
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, numc()}; }

  // Selects components by integers [n] (negative ones count from the end) or by a mask [numc] of bools, with the
  // residual as it is or without any. The recovery changes either way.
  Composition c_index_select(const at::Tensor& index, bool with_residual = true) const;
  // Selects the components start, start + step, ... before end, as Python slices do.
  Composition c_slice(int64_t start, std::optional<int64_t> end = std::nullopt, int64_t step = 1,
                      bool with_residual = true) const;
  // Replaces numbers of components where the mask (bools, [numc] or [numc, *S]) holds; the residual stays.
  Composition c_masked_fill(const at::Tensor& mask, const at::Scalar& number) const;
  Composition& c_masked_fill_(const at::Tensor& mask, const at::Scalar& number);
  // Replaces one component, some components (selected as in c_index_select; parts [n, *S] or what broadcasts to that),
  // or the residual.
  Composition with_component(int64_t index, const at::Tensor& part) const;
  Composition with_components(const at::Tensor& index, const at::Tensor& parts) const;
  Composition with_residual(const at::Tensor& residual) const;
  // Applies a function of rows [n, *S] to the components, and to reference and leftover as one row each. The recovery
  // becomes that of the function only if the function is linear and treats all rows alike.
  using RowFunction = std::function<at::Tensor(const at::Tensor& rows)>;
  Composition c_apply(const RowFunction& function) const;
  // Applies a function of one tensor of shape S to each component, the reference and the leftover, one by one.
  using PartFunction = std::function<at::Tensor(const at::Tensor& part)>;
  Composition c_map(const PartFunction& function) const;

  // ---- comparisons and conditions: bools, computed from values

  at::Tensor eq(const TensorOrComposition& other) const;
  at::Tensor eq(const at::Scalar& other) const { return value().eq(other); }
  at::Tensor ne(const TensorOrComposition& other) const;
  at::Tensor ne(const at::Scalar& other) const { return value().ne(other); }
  at::Tensor lt(const TensorOrComposition& other) const;
  at::Tensor lt(const at::Scalar& other) const { return value().lt(other); }
  at::Tensor le(const TensorOrComposition& other) const;
  at::Tensor le(const at::Scalar& other) const { return value().le(other); }
  at::Tensor gt(const TensorOrComposition& other) const;
  at::Tensor gt(const at::Scalar& other) const { return value().gt(other); }
  at::Tensor ge(const TensorOrComposition& other) const;
  at::Tensor ge(const at::Scalar& other) const { return value().ge(other); }
  at::Tensor isnan() const;
  at::Tensor isinf() const;
  at::Tensor isfinite() const;
  // Whether some or all elements are not zero.
  bool any() const;
  bool all() const;

  // ---- memory and autograd

  Composition to(at::Device device) const;
  Composition cpu() const;
  // -1: the current CUDA device.
  Composition cuda(int device_index = -1) const;
  // Shares memory, without autograd's graph.
  Composition detach() const;
  Composition clone() const;
  Composition contiguous() const;

  // Selects elements by indices of the tensor's dimensions, as Tensor::index: x.index({0, "...", Slice(1, None), mask})
  // with the names of <ATen/TensorIndexing.h>.
  Composition index(at::ArrayRef<at::indexing::TensorIndex> indices, const CallOptions& options = {}) const;

#include "core/composition/composition_methods.inc"  // generated from everyday_operators.txt

  // "composition 0:\n<tensor>\n...residual:\n<tensor>", tensors as FormatTensor writes them; no line end at the end.
  std::string ToString() const;

 private:
  Composition() = default;
  void Set(const at::Tensor& components, const at::Tensor& reference, const at::Tensor& leftover);
  // Applies one function to each part and to what operators computed.
  Composition Each(const std::function<at::Tensor(const at::Tensor&)>& function) const;
  Composition Replace(const at::Tensor& components, const at::Tensor& reference, const at::Tensor& leftover) const;

  at::Tensor components_;
  at::Tensor reference_;
  at::Tensor leftover_;
  Origin origin_;
};

// Joins compositions: their components, one behind the other; residuals add up. All have one shape, dtype and device.
// `sum_residual` false: the residual is zero.
Composition c_cat(const std::vector<Composition>& compositions, bool sum_residual = true);
// Makes a composition without residual whose components are tensors of one shape.
Composition c_stack(const std::vector<at::Tensor>& components);

std::ostream& operator<<(std::ostream& out, const Composition& composition);

// The difference between a recovery and what it should be. NaN equals NaN only, an infinity itself only.
struct RecoveryDifference {
  double largest = 0;      // of |recovery - expected|, over elements where both are finite
  double sum = 0;          // likewise
  double relative = 0;     // largest over the largest magnitude expected (over 1 where that is zero)
  int64_t not_finite = 0;  // elements that are NaN or infinite in one of them and not the same in the other
};
// Throws InvalidArgument where the shapes differ.
RecoveryDifference CompareRecovery(const Composition& composition, const at::Tensor& expected);

struct RecoveryBound {
  double bound = 1e-2;
  bool sum = true;                // what is held against the bound: the sum of the errors, or the largest
  at::Tensor without_components;  // [numc] of bools: components that do not count; undefined: all count
  at::Tensor without_elements;    // S, of bools: elements that do not count; undefined: all count
};
// Checks a recovery. Throws FailedPrecondition, with the difference, if the recovery misses the bound, or is not finite
// where the expectation is.
void CheckRecovery(const Composition& composition, const at::Tensor& expected, const RecoveryBound& bound = {});

}  // namespace addend

#endif  // ADDEND_CORE_COMPOSITION_COMPOSITION_H_
