// A tensor written as a sum of components and a residual, how it is made, and how it is printed.
#ifndef ADDEND_CORE_EXPLAIN_COMPOSITION_H_
#define ADDEND_CORE_EXPLAIN_COMPOSITION_H_

#include <ATen/core/Tensor.h>
#include <c10/core/TensorOptions.h>

#include <cstdint>
#include <string>
#include <vector>

namespace addend {

// A tensor of shape S as numc components and a residual, each of shape S. The residual is kept in two parts: the
// reference, which is the value where every component is zero, and the leftover, which is what no component could take.
// A value: nothing changes it once it is made. Copies share memory, also with the tensors that it was made from.
class Composition {
 public:
  // Components [numc, *S], reference S, leftover S; an undefined leftover is zeros. All floating-point or complex, of one dtype
  // and on one device. They are detached from autograd. Like all constructors here, throws InvalidArgument that says
  // what is wrong.
  Composition(const at::Tensor& components, const at::Tensor& reference, const at::Tensor& leftover = at::Tensor());

  static Composition Zeros(at::IntArrayRef shape, int64_t numc, const at::TensorOptions& options);

  // Parts of shape S become the components; the residual becomes the reference. Undefined: zeros. No parts: numc is 0,
  // and the residual must be defined.
  static Composition FromParts(const std::vector<at::Tensor>& parts, const at::Tensor& residual = at::Tensor());

  // One component for each position along some dimensions of a value: component offset + i is value - baseline where
  // the index over `dims`, flattened with the last of them fastest, is i; it is zero elsewhere. The reference is the
  // baseline, which broadcasts to the value; undefined: zeros. Negative dims count from the end; without any dims the
  // whole value is one component. numc -1: no more components than needed.
  static Composition Diagonal(const at::Tensor& value, const std::vector<int64_t>& dims,
                              const at::Tensor& baseline = at::Tensor(), int64_t offset = 0, int64_t numc = -1);

  // One component for each label: component l is value - baseline where the label is l; it is zero elsewhere. Labels
  // are integers, and their shape is that of the value or of its leading dimensions: what lies behind shares a label
  // (labels [batch, token] for a value [batch, token, feature]). A label dimension of size 1 stands for all positions.
  // Elements with the label -1 belong to no component: the reference has their value, and the baseline elsewhere. numc
  // -1: the largest label + 1.
  static Composition FromLabels(const at::Tensor& value, const at::Tensor& labels,
                                const at::Tensor& baseline = at::Tensor(), int64_t numc = -1);

  int64_t numc() const { return components_.size(0); }
  at::IntArrayRef sizes() const { return reference_.sizes(); }
  const at::Tensor& components() const { return components_; }
  const at::Tensor& reference() const { return reference_; }
  const at::Tensor& leftover() const { return leftover_; }
  // Throws InvalidArgument unless 0 <= index < numc().
  at::Tensor component(int64_t index) const;
  // reference + leftover.
  at::Tensor residual() const;
  // The sum of the components, plus the residual.
  at::Tensor recovery() const;

  // "composition 0:\n<tensor>\n...residual:\n<tensor>", tensors as FormatTensor writes them; no line end at the end.
  std::string ToString() const;

 private:
  at::Tensor components_;
  at::Tensor reference_;
  at::Tensor leftover_;
};

// The text that PyTorch prints for a tensor under its default options. Autograd is not mentioned. Throws
// InvalidArgument for what is neither dense nor made of real numbers or bools.
std::string FormatTensor(const at::Tensor& tensor);

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_COMPOSITION_H_
