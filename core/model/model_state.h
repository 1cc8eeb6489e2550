// State that runs of a model leave for the next one, kept and put back.
#ifndef ADDEND_CORE_MODEL_MODEL_STATE_H_
#define ADDEND_CORE_MODEL_MODEL_STATE_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace addend {

// A model's state as it was when this was made; Model::KeepState() makes it.
class ModelState {
 public:
  virtual ~ModelState() = default;
  // Makes the state that of then again.
  virtual void Restore() = 0;
  // The name of something that is another now; empty where nothing is.
  virtual std::string Difference() const = 0;
};

// Tensors that keep their identity: the memory that each has, and what is written there.
class KeptTensors : public ModelState {
 public:
  // `elements`: whether these are put back, which takes their memory again. Sparse tensors are left alone.
  void Add(const std::string& name, const at::Tensor& tensor, bool elements);
  void Restore() override;
  std::string Difference() const override;

 private:
  struct Kept {
    std::string name;
    at::Tensor tensor;
    at::Tensor memory;  // an alias of what the tensor was
    at::Tensor before;  // a copy of the elements; undefined where they are not kept
  };
  std::vector<Kept> kept_;
};

}  // namespace addend

#endif  // ADDEND_CORE_MODEL_MODEL_STATE_H_
