// Addend for C++17: owning classes for the handles of addend.h, and exceptions for its statuses. Header-only, so that a
// program needs only the C interface of the library that it is run with.
#ifndef ADDEND_C_API_ADDEND_HPP_
#define ADDEND_C_API_ADDEND_HPP_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "addend.h"
#include "addend_ext.h"

// The C++ ABI of the project's LibTorch, which find_package(Addend) finds out, beside that of the compiled file: a
// program with both does not link, and the linker does not say why. Nothing in this header depends on it.
#if defined(ADDEND_LIBTORCH_CXX11_ABI) && defined(_GLIBCXX_USE_CXX11_ABI)
#define ADDEND_AS_TEXT_(number) #number
#define ADDEND_AS_TEXT(number) ADDEND_AS_TEXT_(number)
static_assert(ADDEND_LIBTORCH_CXX11_ABI == _GLIBCXX_USE_CXX11_ABI,
              "the project's LibTorch was built with _GLIBCXX_USE_CXX11_ABI=" ADDEND_AS_TEXT(
                  ADDEND_LIBTORCH_CXX11_ABI) ", and this file is compiled with "
                                             "_GLIBCXX_USE_CXX11_ABI=" ADDEND_AS_TEXT(_GLIBCXX_USE_CXX11_ABI));
#undef ADDEND_AS_TEXT
#undef ADDEND_AS_TEXT_
#endif

namespace addend::api {

// A text of the C interface; "" where it gives none.
inline std::string OrEmpty(const char* text) { return text == nullptr ? "" : text; }

// The list that a function of the C interface gives by position, which is the last of its arguments.
template <typename T, typename Function, typename... Arguments>
std::vector<T> Listed(size_t count, const Function& function, const Arguments&... arguments) {
  std::vector<T> listed;
  for (size_t k = 0; k < count; ++k) listed.emplace_back(function(arguments..., k));
  return listed;
}

// The texts that a function of the C interface gives by position, up to the first NULL.
template <typename Function, typename H>
std::vector<std::string> Lines(const Function& function, const H* handle) {
  std::vector<std::string> lines;
  while (const char* line = function(handle, lines.size())) lines.emplace_back(line);
  return lines;
}

// The exception for a status that is not OK.
class Error : public std::runtime_error {
 public:
  // Takes over the status, which it releases.
  explicit Error(addend_status* status)
      : std::runtime_error(addend_status_message(status)), status_(status, addend_status_release) {}
  // One of addend_code.
  int32_t code() const { return addend_status_code(status_.get()); }
  // Source location in the library; empty unless ContextOptions::Detail asked for it.
  std::string detail() const { return addend_status_detail(status_.get()); }
  // Data of the message, by key ("op", "module_path", ...); "" if there is none.
  std::string payload(const std::string& key) const {
    return OrEmpty(addend_status_payload(status_.get(), key.c_str()));
  }
  // The keys that have something.
  std::vector<std::string> payload_keys() const { return Lines(addend_status_payload_key, status_.get()); }

 private:
  std::shared_ptr<addend_status> status_;
};

// Throws Error unless the status is OK.
inline void Check(addend_status* status) {
  if (status != nullptr) throw Error(status);
}

// Calls a function of the C interface that gives what it makes by its last parameter; returns that. Throws like Check.
template <typename... Parameters, typename... Arguments>
auto Made(addend_status* (*function)(Parameters...), Arguments... arguments) {
  std::remove_pointer_t<std::tuple_element_t<sizeof...(Arguments), std::tuple<Parameters...>>> made{};
  Check(function(arguments..., &made));
  return made;
}

// The owner of a handle. Copies share the handle.
template <typename H, void (*kRelease)(H*)>
class Handle {
 public:
  // No handle.
  Handle() = default;
  // Takes over the handle, which the last copy releases.
  explicit Handle(H* handle) : handle_(handle, kRelease) {}
  // The handle, for functions of the C interface; it stays owned.
  H* get() const { return handle_.get(); }
  // Whether there is a handle.
  explicit operator bool() const { return handle_ != nullptr; }

 private:
  std::shared_ptr<H> handle_;
};

// The owner of a handle that is filled step by step: functions give the object itself, so that calls follow one
// another.
template <typename Own, typename H, void (*kRelease)(H*)>
class Builder : public Handle<H, kRelease> {
 public:
  using Handle<H, kRelease>::Handle;

 protected:
  // Throws unless the status is OK.
  Own& Set(addend_status* status) {
    Check(status);
    return static_cast<Own&>(*this);
  }
};

// The text of a string of the C interface, which is released.
inline std::string Take(addend_string* text) {
  const std::unique_ptr<addend_string, void (*)(addend_string*)> owner(text, addend_string_release);
  return std::string(addend_string_data(text), addend_string_size(text));
}

// The text that a function of the C interface makes.
template <typename Function, typename... Arguments>
std::string TextOf(const Function& function, const Arguments&... arguments) {
  return Take(Made(function, arguments...));
}

// The release, "0.1.0".
inline std::string Version() { return addend_version(); }
// The LibTorch that the library was built for, "1.13.1".
inline std::string LibTorchVersion() { return addend_libtorch_version(); }
// Throws unless this process has loaded that LibTorch, and only one.
inline void CheckLibTorch() { Check(addend_check_libtorch()); }
// Loads the LibTorch in `folder` if this process has loaded none; then throws like CheckLibTorch().
inline void LoadLibTorch(const std::string& folder) { Check(addend_load_libtorch(folder.c_str())); }
// Whether this process has loaded a LibTorch already.
inline bool LibTorchIsLoaded() { return addend_libtorch_is_loaded() != 0; }
// Text for reports of problems: releases, files, LibTorch, threads, devices. Never fails.
inline std::string ShowConfig() { return addend_show_config(); }
// How many threads LibTorch computes with, here and in everything else of this process.
inline void SetNumThreads(int32_t num_threads) { Check(addend_set_num_threads(num_threads)); }

// An operator that has a rule.
struct Operator {
  std::string name;     // "aten::softmax"
  std::string kind;     // "path"
  std::string schemas;  // in this LibTorch, one a line
};
// The operators that have a rule, in the order of their names.
inline std::vector<Operator> Operators() {
  std::vector<Operator> operators;
  for (size_t k = 0; k < addend_op_count(); ++k) {
    operators.push_back({addend_op_name(k), addend_op_kind(k), addend_op_schema(k)});
  }
  return operators;
}

// A switch that ends runs from another thread; see Request::CancelledBy.
class Cancellation : public Handle<addend_cancellation, addend_cancellation_release> {
 public:
  // A switch that is off.
  Cancellation() : Handle(Made(addend_cancellation_create)) {}
  // Ends the runs that look at it, each before its next operator.
  void Cancel() const { addend_cancellation_cancel(get()); }
};

template <typename T>
constexpr int32_t kDtypeOf = 0;
template <>
inline constexpr int32_t kDtypeOf<float> = ADDEND_FLOAT32;
template <>
inline constexpr int32_t kDtypeOf<double> = ADDEND_FLOAT64;
template <>
inline constexpr int32_t kDtypeOf<int64_t> = ADDEND_INT64;
template <>
inline constexpr int32_t kDtypeOf<int32_t> = ADDEND_INT32;

// A plain tensor, on its way into the library or out of it.
class Tensor : public Handle<addend_tensor, addend_tensor_release> {
 public:
  using Handle::Handle;

  // A tensor of a copy of the numbers, row by row: Tensor::Copy<float>({1, 2, 3, 4, 5, 6}, {2, 3}).
  template <typename T>
  static Tensor Copy(const std::vector<T>& numbers, const std::vector<int64_t>& dims) {
    static_assert(kDtypeOf<T> != 0, "elements are float, double, int64_t or int32_t");
    return Tensor(
        Made(addend_tensor_copy, numbers.data(), numbers.size() * sizeof(T), kDtypeOf<T>, dims.data(), dims.size()));
  }

  // A tensor on the caller's memory of `num_bytes`, without a copy: `released`, if there is one, is called once nothing
  // needs the memory any more, and not where this throws. Strides count elements; without them the tensor is
  // contiguous.
  static Tensor Wrap(void* data, size_t num_bytes, int32_t dtype, const std::vector<int64_t>& dims,
                     std::function<void()> released = nullptr, const std::vector<int64_t>& strides = {}) {
    auto payload = std::make_unique<std::function<void()>>(std::move(released));
    const auto release = [](void* own) {
      const std::unique_ptr<std::function<void()>> call(static_cast<std::function<void()>*>(own));
      if (*call) (*call)();
    };
    addend_tensor* tensor = nullptr;
    Check(addend_tensor_wrap(data, num_bytes, dtype, dims.data(), dims.size(),
                             strides.empty() ? nullptr : strides.data(), strides.size(), release, payload.get(),
                             &tensor));
    payload.release();
    return Tensor(tensor);
  }
  // A tensor on the caller's elements of a type: `owner` is kept until nothing needs the memory; without one the memory
  // has to live as long as anything computes with it.
  template <typename T>
  static Tensor Wrap(T* data, const std::vector<int64_t>& dims, const std::vector<int64_t>& strides = {},
                     std::shared_ptr<void> owner = nullptr) {
    static_assert(kDtypeOf<T> != 0, "elements are float, double, int64_t or int32_t");
    return Wrap(
        data, Extent(dims, strides) * sizeof(T), kDtypeOf<T>, dims, [owner = std::move(owner)] {}, strides);
  }
  // Takes the tensor of another library over, whose deleter is called once nothing needs it; not where this throws.
  static Tensor FromDlpack(DLManagedTensor* managed) { return Imported(managed, 0); }
  static Tensor FromDlpack(DLManagedTensorVersioned* managed) { return Imported(managed, 1); }
  // A view for other libraries, of which one calls the deleter. The memory must not be written.
  DLManagedTensorVersioned* ToDlpack() const { return static_cast<DLManagedTensorVersioned*>(Exported(1)); }
  // A view like ToDlpack(), for libraries that know the older struct only, in which bools are bytes.
  DLManagedTensor* ToOlderDlpack() const { return static_cast<DLManagedTensor*>(Exported(0)); }
  // A tensor on the storage of an at::Tensor of this process's LibTorch, given by its address: FromLibTorch(&tensor).
  static Tensor FromLibTorch(const void* at_tensor) { return Tensor(Made(addend_tensor_from_libtorch, at_tensor)); }
  // The address of an at::Tensor on the same storage: *static_cast<at::Tensor*>(tensor.ToLibTorch().get()).
  std::shared_ptr<void> ToLibTorch() const {
    return std::shared_ptr<void>(Made(addend_tensor_to_libtorch, get()), addend_libtorch_tensor_release);
  }

  // The sizes of its dimensions.
  std::vector<int64_t> sizes() const {
    return Listed<int64_t>(addend_tensor_num_dims(get()), addend_tensor_size, get());
  }
  // In elements.
  std::vector<int64_t> strides() const {
    return Listed<int64_t>(addend_tensor_num_dims(get()), addend_tensor_stride, get());
  }
  // Bytes of the elements, one behind the other.
  size_t num_bytes() const { return addend_tensor_num_bytes(get()); }
  // One of addend_dtype.
  int32_t dtype() const { return addend_tensor_dtype(get()); }
  // "cpu" or "cuda:0".
  std::string device() const { return addend_tensor_device(get()); }

  // The elements, converted to T and copied.
  template <typename T>
  std::vector<T> To() const {
    static_assert(kDtypeOf<T> != 0, "elements are float, double, int64_t or int32_t");
    const Tensor converted(Made(addend_tensor_to, get(), kDtypeOf<T>, "cpu"));
    size_t count = 1;
    for (const int64_t size : sizes()) count *= static_cast<size_t>(size);
    const T* data = static_cast<const T*>(addend_tensor_data(converted.get()));
    return std::vector<T>(data, data + count);
  }
  // The tensor as PyTorch prints it, in several lines.
  std::string ToString() const { return TextOf(addend_tensor_to_string, get()); }

 private:
  // How many elements lie from the first to the last. The library judges sizes and strides, so that nonsense is 0 here.
  static size_t Extent(const std::vector<int64_t>& dims, const std::vector<int64_t>& strides) {
    size_t contiguous = 1;
    size_t last = 0;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d] <= 0) return 0;
      contiguous *= static_cast<size_t>(dims[d]);
      if (d < strides.size()) last += static_cast<size_t>(dims[d] - 1) * static_cast<size_t>(strides[d]);
    }
    return strides.empty() ? contiguous : last + 1;
  }
  static Tensor Imported(void* managed, int32_t is_versioned) {
    return Tensor(Made(addend_tensor_from_dlpack, managed, is_versioned));
  }
  void* Exported(uint32_t major) const {
    void* managed = nullptr;
    int32_t is_versioned = 0;
    Check(addend_tensor_to_dlpack(get(), major, &managed, &is_versioned));
    return managed;
  }
};

// The tensors of a .safetensors or .npy file. Files are written as .safetensors.
class TensorFile : public Builder<TensorFile, addend_tensor_file, addend_tensor_file_release> {
 public:
  using Builder::Builder;

  // Reads a file.
  static TensorFile Read(const std::string& path) { return TensorFile(Made(addend_tensor_file_read, path.c_str())); }
  // `name` stands for the path in messages.
  static TensorFile Decode(const std::string& bytes, const std::string& name = "bytes") {
    return TensorFile(Made(addend_tensor_file_decode, bytes.data(), bytes.size(), name.c_str()));
  }
  // An empty file, to be filled by Add.
  static TensorFile Create() { return TensorFile(Made(addend_tensor_file_create)); }

  // The names of the tensors, in order; that of a .npy file is "".
  std::vector<std::string> names() const {
    return Listed<std::string>(addend_tensor_file_size(get()), addend_tensor_file_name, get());
  }
  // A tensor by its name, on the memory of the file.
  Tensor tensor(const std::string& name) const { return Tensor(Made(addend_tensor_file_tensor, get(), name.c_str())); }
  // The first tensor of the file, which is the only one of a .npy file.
  Tensor First() const { return Tensor(Made(addend_tensor_file_tensor, get(), nullptr)); }
  // The metadata under a key; "" if there is none.
  std::string metadata(const std::string& key) const {
    return OrEmpty(addend_tensor_file_metadata(get(), key.c_str()));
  }
  // Adds a tensor, or replaces the one of that name.
  TensorFile& Add(const std::string& name, const Tensor& tensor) {
    return Set(addend_tensor_file_add(get(), name.c_str(), tensor.get()));
  }
  // Lets the file say something under a key.
  TensorFile& SetMetadata(const std::string& key, const std::string& value) {
    return Set(addend_tensor_file_set_metadata(get(), key.c_str(), value.c_str()));
  }
  // Writes it as .safetensors, all or nothing.
  void Write(const std::string& path) const { Check(addend_tensor_file_write(get(), path.c_str())); }
  // The bytes that Write would write.
  std::string Encode() const { return TextOf(addend_tensor_file_encode, get()); }
};

// A description of the concepts that people are told of; docs/reasons.md describes it.
class Concepts : public Handle<addend_concepts, addend_concepts_release> {
 public:
  using Handle::Handle;

  // From {"format": "addend.concepts", "version": 1, ...}.
  static Concepts Read(const std::string& json) { return Concepts(Made(addend_concepts_read, json.c_str())); }
};

// A page for a browser from what Attribution::ReasonsJson or Explanation::ReasonsJson gave.
inline std::string ReasonsHtml(const std::string& json) { return TextOf(addend_reasons_html, json.c_str()); }

// A page for a browser from what Model::InteractionsJson gave.
inline std::string InteractionsHtml(const std::string& json) { return TextOf(addend_interactions_html, json.c_str()); }

// One number and its parts: value = reference + contributions + leftover, up to the recovery error.
class Explanation : public Handle<addend_explanation, addend_explanation_release> {
 public:
  using Handle::Handle;

  // From what Json() gave.
  static Explanation Read(const std::string& json) { return Explanation(Made(addend_explanation_read, json.c_str())); }

  // The value that the model computed.
  double value() const { return addend_explanation_number(get(), ADDEND_NUMBER_VALUE); }
  // The reference: the value on the baseline.
  double reference() const { return addend_explanation_number(get(), ADDEND_NUMBER_REFERENCE); }
  // The leftover: summand that belongs to no component.
  double leftover() const { return addend_explanation_number(get(), ADDEND_NUMBER_LEFTOVER); }
  // The sum of reference, contributions and leftover.
  double recovery() const { return addend_explanation_number(get(), ADDEND_NUMBER_RECOVERY); }
  // Recovery minus value: rounding, unless something is wrong.
  double recovery_error() const { return addend_explanation_number(get(), ADDEND_NUMBER_RECOVERY_ERROR); }
  // How much cancels: the magnitudes of all parts, or that of the reference if it is larger, over the smaller of
  // |value| and |value - reference|; 1 where nothing does.
  double conditioning() const { return addend_explanation_number(get(), ADDEND_NUMBER_CONDITIONING); }
  // The sum of all magnitudes, against which rounding is measured.
  double mass() const { return addend_explanation_number(get(), ADDEND_NUMBER_MASS); }
  // Baselines that the numbers are means over, and how a component's contribution varies with them; see addend.h.
  int64_t num_baselines() const { return addend_explanation_num_baselines(get()); }
  // The standard errors of the contributions, which are means over several baselines; NaN where there was one.
  std::vector<double> StandardErrors() const {
    return Listed<double>(numc(), addend_explanation_standard_error, get());
  }
  // The share of baselines under which a contribution has the sign of their mean; NaN where there was one.
  std::vector<double> SameSign() const { return Listed<double>(numc(), addend_explanation_same_sign, get()); }
  // The number that is explained: "[0, 7]", or "[0, 7] minus [0, 2]".
  std::string target() const { return addend_explanation_target(get()); }
  // How many components there are.
  int64_t numc() const { return addend_explanation_numc(get()); }

  // The contribution of one component: its position on the component axis, its name, and how much it adds.
  struct Contribution {
    int64_t component;
    std::string name;
    double value;
  };
  // The contributions of the largest magnitudes, at most `count`.
  std::vector<Contribution> Top(int64_t count) const {
    std::vector<Contribution> top;
    for (int64_t rank = 0; rank < count; ++rank) {
      const int64_t component = addend_explanation_ranked(get(), rank);
      if (component < 0) break;
      top.push_back(
          {component, addend_explanation_name(get(), component), addend_explanation_contribution(get(), component)});
    }
    return top;
  }
  // The explained number as a sum, in one line.
  std::string ToString() const {
    char sum[160];
    std::snprintf(sum, sizeof(sum), ": value %.6g = reference %.6g + %lld contributions %.6g + leftover %.6g", value(),
                  reference(), static_cast<long long>(numc()), recovery() - reference() - leftover(), leftover());
    return target() + sum;
  }
  // All of it as a page for a browser, which needs nothing else.
  std::string Html() const { return TextOf(addend_explanation_html, get()); }
  // A picture in SVG for reports and e-mails: the way from the reference to the value, with the notes below it.
  std::string Svg() const { return TextOf(addend_explanation_svg, get()); }
  // All of it as a JSON object.
  std::string Json() const { return TextOf(addend_explanation_json, get()); }
  // Its reasons, {"format": "addend.reasons", ...}: concepts that moved it the way that was asked about, in order.
  std::string ReasonsJson(const Concepts& concepts) const {
    return TextOf(addend_explanation_reasons, get(), concepts.get());
  }
};

// A tensor as a sum: its components, one for each part of the input, and the residual, which is reference + leftover.
class Composition : public Handle<addend_composition, addend_composition_release> {
 public:
  using Handle::Handle;

  // A composition of given parts: components [numc, *S], reference and leftover [*S]. `in_graph`: for Gradient().
  static Composition FromTensors(const Tensor& components, const Tensor& reference = {}, const Tensor& leftover = {},
                                 bool in_graph = false) {
    return Composition(
        Made(addend_composition_from_tensors, components.get(), reference.get(), leftover.get(), in_graph ? 1 : 0));
  }
  // `numc` -1: no more than needed.
  static Composition Diagonal(const Tensor& value, const std::vector<int64_t>& dims, const Tensor& baseline = {},
                              int64_t offset = 0, int64_t numc = -1) {
    return Composition(
        Made(addend_composition_diagonal, value.get(), dims.data(), dims.size(), baseline.get(), offset, numc));
  }
  // One component for each label, -1 standing for none. `numc` -1: no more than needed.
  static Composition FromLabels(const Tensor& value, const Tensor& labels, const Tensor& baseline = {},
                                int64_t numc = -1) {
    return Composition(Made(addend_composition_from_labels, value.get(), labels.get(), baseline.get(), numc));
  }

  // How many components it has.
  int64_t numc() const { return addend_composition_numc(get()); }
  // Type of the value; the parts of half types are float32.
  int32_t dtype() const { return addend_composition_dtype(get()); }
  // "cpu" or "cuda:0".
  std::string device() const { return addend_composition_device(get()); }
  // The sizes of the value.
  std::vector<int64_t> sizes() const {
    return Listed<int64_t>(addend_composition_num_dims(get()), addend_composition_size, get());
  }
  // All components, [numc, *S].
  Tensor components() const { return Part(ADDEND_COMPONENTS); }
  // The reference: the value on the baseline.
  Tensor reference() const { return Part(ADDEND_REFERENCE); }
  // The leftover: what belongs to no component.
  Tensor leftover() const { return Part(ADDEND_LEFTOVER); }
  // The sum of reference and leftover.
  Tensor residual() const { return Part(ADDEND_RESIDUAL); }
  // The sum of all components and the residual.
  Tensor recovery() const { return Part(ADDEND_RECOVERY); }
  // The value that the model itself computed.
  Tensor value() const { return Part(ADDEND_VALUE); }
  // One component, [*S].
  Tensor component(int64_t index) const { return Tensor(Made(addend_composition_component, get(), index)); }
  // Some components, negative indices from the end, with the residual or with none.
  Composition Select(const std::vector<int64_t>& indices, bool with_residual = true) const {
    return Composition(Made(addend_composition_select, get(), indices.data(), indices.size(), with_residual ? 1 : 0));
  }
  // The gradient of sum(cotangent * this) with respect to the parts of `input`, which was made in_graph and led here.
  Composition Gradient(const Composition& cotangent, const Composition& input) const {
    return Composition(Made(addend_composition_grad, get(), cotangent.get(), input.get()));
  }
  // Explains one number of it, its components being named by their positions. Targets are text: "top1", "0,7", "7-2".
  Explanation Explain(const std::string& target = "top1") const {
    return Explanation(Made(addend_composition_explain, get(), target.c_str()));
  }
  // All parts, as PyTorch prints tensors, in several lines.
  std::string ToString() const { return TextOf(addend_composition_to_string, get()); }

 private:
  Tensor Part(int32_t part) const { return Tensor(Made(addend_composition_part, get(), part)); }
};

// The results of a run or a call, in order, with its report; those of a model are its outputs, then its probes.
class Results : public Handle<addend_results, addend_results_release> {
 public:
  using Handle::Handle;

  // How many results there are.
  size_t size() const { return addend_results_size(get()); }
  // The name of a result: "output", "output.1", the selector of a probe; "" where it has none.
  std::string name(size_t index) const { return OrEmpty(addend_results_name(get(), index)); }
  // Whether a result is a composition.
  bool is_composition(size_t index) const { return addend_results_kind(get(), index) == ADDEND_RESULT_COMPOSITION; }
  // A composition among the results.
  Composition composition(size_t index = 0) const {
    return Composition(Made(addend_results_composition, get(), index));
  }
  // A tensor among the results, or the value of a composition.
  Tensor tensor(size_t index = 0) const { return Tensor(Made(addend_results_tensor, get(), index)); }
  // `name` "": the first composition.
  Explanation Explain(const std::string& target = "top1", const std::string& name = "") const {
    return Explanation(Made(addend_results_explain, get(), name.empty() ? nullptr : name.c_str(), target.c_str()));
  }
  // A number among the results.
  double number(size_t index = 0) const { return Made(addend_results_number, get(), index); }
  // One of addend_result_kind.
  int32_t kind(size_t index) const { return addend_results_kind(get(), index); }
  // The type of a result of any kind; a number is ADDEND_INT64, ADDEND_FLOAT64 or ADDEND_BOOL.
  int32_t dtype(size_t index = 0) const { return addend_results_dtype(get(), index); }
  // The sizes of a result of any kind; a number has none.
  std::vector<int64_t> sizes(size_t index = 0) const {
    return Listed<int64_t>(addend_results_num_dims(get(), index), addend_results_dim_size, get(), index);
  }
  // Everything that a reader of the results has to know, one line each.
  std::vector<std::string> notes() const { return Lines(addend_results_note, get()); }
  // Those of the notes that say that numbers may not mean what a reader takes them for.
  std::vector<std::string> warnings() const { return Lines(addend_results_warning, get()); }
  // A number of the report by its key: "worst_recovery_error"; NaN where there is none.
  double report(const std::string& key) const { return addend_results_report_number(get(), key.c_str()); }
  // A text of the report: "reference_is_model_on_baseline" or "reference_reason"; empty for any other key.
  std::string report_text(const std::string& key) const {
    return OrEmpty(addend_results_report_text(get(), key.c_str()));
  }
  // All of the report as a JSON object.
  std::string ReportJson() const { return TextOf(addend_results_report, get()); }
};

// Explained numbers, with the attributions of every element of the inputs.
class Attribution : public Handle<addend_attribution, addend_attribution_release> {
 public:
  using Handle::Handle;

  // How many numbers are explained: the targets of the request, or the examples.
  size_t num_targets() const { return addend_attribution_num_targets(get()); }
  // One of the numbers, by component.
  Explanation Explain(size_t target = 0) const { return Explanation(Made(addend_attribution_explain, get(), target)); }
  // The explained tensor, the elements of each input, and the report.
  Results results() const { return Results(Made(addend_attribution_results, get())); }
  // The attributions of the elements of an input, [targets, *S], or [*S] where each example has a target. Inputs inside
  // the model come behind the arguments.
  Tensor input(size_t index = 0) const { return results().tensor(index + 1); }
  // All of it as a JSON object.
  std::string Json() const { return TextOf(addend_attribution_json, get()); }
  // The reasons of all targets, or of all examples, in their order.
  std::string ReasonsJson(const Concepts& concepts) const {
    return TextOf(addend_attribution_reasons, get(), concepts.get());
  }
  // All of it as a page for a browser, which needs nothing else.
  std::string Html() const { return TextOf(addend_attribution_html, get()); }
};

// A log of decisions: one record for each, on the disk before Append() returns. Any number of threads may use one.
class AuditLog : public Handle<addend_audit_log, addend_audit_log_release> {
 public:
  // `options`: JSON, as addend_audit_log_open takes them.
  explicit AuditLog(const std::string& path, const std::string& options = "{}")
      : Handle(Made(addend_audit_log_open, path.c_str(), options.c_str())) {}

  // Appends a record and returns its line. `options`: JSON, as addend_audit_log_append takes them.
  std::string Append(const Attribution& attribution, const std::string& options = "{}") const {
    return TextOf(addend_audit_log_append, get(), attribution.get(), options.c_str());
  }
  // Verifies a log; what was found, as JSON. `options`: JSON, as addend_audit_verify takes them.
  static std::string Verify(const std::string& path, const std::string& options = "{}") {
    return TextOf(addend_audit_verify, path.c_str(), options.c_str());
  }
  // The log's end as JSON: {"path", "records", "hash", "torn_bytes"}.
  std::string State() const { return TextOf(addend_audit_log_state, get()); }
};

// Options of a context. Each function gives the options themselves, so that calls follow one another.
class ContextOptions : public Builder<ContextOptions, addend_context_options, addend_context_options_release> {
 public:
  // The defaults.
  ContextOptions() : Builder(Made(addend_context_options_create)) {}

  // Sets a choice of the policy: "preset", "faithful"; docs/policies.md has all of them.
  ContextOptions& Policy(const std::string& key, const std::string& value) {
    return Set(addend_context_options_set_policy(get(), key.c_str(), value.c_str()));
  }
  // Rules as addend_rules_add takes them: an op and the principle of its rule ("pointwise"). Replaces earlier ones.
  ContextOptions& Rules(const std::vector<std::pair<std::string, std::string>>& rules) {
    const Handle<addend_rules, addend_rules_release> added(Made(addend_rules_create));
    for (const auto& [op, principle] : rules) Check(addend_rules_add(added.get(), op.c_str(), principle.c_str()));
    return Set(addend_context_options_set_rules(get(), added.get()));
  }
  // Gets a level of addend_log_level and a line of text, on the thread that runs. It must not throw.
  ContextOptions& Log(std::function<void(int32_t, const std::string&)> log) {
    using Function = decltype(log);
    auto payload = std::make_unique<Function>(std::move(log));
    Check(addend_context_options_set_log(
        get(), [](void* held, int32_t level, const char* message) { (*static_cast<Function*>(held))(level, message); },
        payload.get(), [](void* held) { delete static_cast<Function*>(held); }));
    payload.release();
    return *this;
  }
  // Gets a stage, the steps done and all steps, on the thread that runs. False ends the run. It must not throw.
  ContextOptions& Progress(std::function<bool(const std::string&, int64_t, int64_t)> progress) {
    using Function = decltype(progress);
    auto payload = std::make_unique<Function>(std::move(progress));
    Check(addend_context_options_set_progress(
        get(),
        [](void* held, const char* stage, int64_t done, int64_t total) -> int32_t {
          return (*static_cast<Function*>(held))(stage, done, total) ? 0 : 1;
        },
        payload.get(), [](void* held) { delete static_cast<Function*>(held); }));
    payload.release();
    return *this;
  }
  // Whether errors tell in their detail where in the library they come from.
  ContextOptions& Detail(bool detail = true) { return Set(addend_context_options_set_detail(get(), detail ? 1 : 0)); }
};

// A policy with what surrounds a run. Immutable; Context() holds the defaults.
class Context : public Handle<addend_context, addend_context_release> {
 public:
  using Handle::Handle;

  static Context Of(const ContextOptions& options) { return Context(Made(addend_context_create, options.get())); }
  // Context::Of({{"preset", "faithful"}, {"segments", "4"}})
  static Context Of(const std::vector<std::pair<std::string, std::string>>& policy) {
    ContextOptions options;
    for (const auto& [key, value] : policy) options.Policy(key, value);
    return Of(options);
  }
  // Every choice of the policy: a JSON object of texts.
  std::string PolicyJson() const { return TextOf(addend_context_policy, get()); }
};

// A request: what is asked of a model. The functions that begin with Split and Baseline speak of the input that was
// added last.
class Request : public Builder<Request, addend_request, addend_request_release> {
 public:
  // A request without inputs.
  Request() : Builder(Made(addend_request_create)) {}

  // `name` "": the next argument of the model.
  Request& Input(const Tensor& value, const std::string& name = "") {
    return Set(addend_request_add_input(get(), name.empty() ? nullptr : name.c_str(), value.get()));
  }
  // Adds a tensor inside the model, selected as by Probe(), as one more input: see addend_request_add_inside.
  Request& Inside(const std::string& selector) { return Set(addend_request_add_inside(get(), selector.c_str())); }
  // One component for each position along a dimension, or along several; negative ones count from the end.
  Request& SplitAlong(const std::vector<int64_t>& dims) {
    return Set(addend_request_split_dims(get(), dims.data(), dims.size()));
  }
  // One component for each label, -1 standing for none.
  Request& SplitByLabels(const Tensor& labels) { return Set(addend_request_split_labels(get(), labels.get())); }
  // Components as given, [numc, *S]; the rest of the input is its reference.
  Request& SplitIntoParts(const Tensor& parts) { return Set(addend_request_split_parts(get(), parts.get())); }
  // Sets the value that means "nothing", zero unless given: a tensor that broadcasts to the input, or a number.
  Request& Baseline(const Tensor& baseline) { return Set(addend_request_set_baseline(get(), baseline.get())); }
  // Several baselines [K, *], of whose attributions the means are given.
  Request& Baselines(const Tensor& baselines) { return Set(addend_request_set_baselines(get(), baselines.get())); }
  Request& Baseline(double baseline) { return Set(addend_request_set_baseline_number(get(), baseline)); }
  // Sets a baseline by a word: "mean:FILE", "median:FILE", "buffer:NAME", "mean", "blur" or "blur:SIGMA".
  Request& Baseline(const std::string& word) { return Set(addend_request_set_baseline_word(get(), word.c_str())); }
  Request& Baseline(const char* word) { return Baseline(std::string(word)); }
  // Sets where the input's components start on the component axis that all inputs share.
  Request& FirstComponent(int64_t first) { return Set(addend_request_set_first_component(get(), first)); }
  // Adds a number for Model::Attribute to explain.
  Request& Target(const std::string& target) { return Set(addend_request_add_target(get(), target.c_str())); }
  // Sets an option of addend_request_set_option() by its key: "timeout", "2.5".
  Request& Option(const std::string& key, const std::string& value) {
    return Set(addend_request_set_option(get(), key.c_str(), value.c_str()));
  }
  // Begin: options, by their keys; the lines are made of core/explain/request_options.txt
  // The tensor that targets are elements of: "output.1", or an inner tensor as in addend_request_add_probe.
  Request& Explained(const std::string& selector) { return Option("at", selector); }
  // Which way addend_model_decompose finds components; the results are the same to rounding. One of "auto", "forward",
  // "backward".
  Request& Direction(const std::string& direction) { return Option("direction", direction); }
  // Whether the first dimension of every split input and of the explained tensor counts examples, each of which has a
  // target of its own in its row.
  Request& EachExample(bool each_example = true) { return Option("each_example", each_example ? "true" : "false"); }
  // Whether, beside each_example, each example has all of the targets, rather than one of them.
  Request& EveryTarget(bool every_target = true) { return Option("every_target", every_target ? "true" : "false"); }
  // Whether every operator is checked, not only those that results depend on.
  Request& Everything(bool everything = true) { return Option("everything", everything ? "true" : "false"); }
  // Whether the model keeps what it computes on the baselines, and takes it from there in later runs of such requests
  // where the baselines and everything else that it depends on are the same.
  Request& KeepReferences(bool keep = true) { return Option("keep_references", keep ? "true" : "false"); }
  // Whether addend_model_record, given one example, derives others of other sizes from it, parts and repetitions, and
  // learns from these.
  Request& LearnSizes(bool learn = true) { return Option("learn_sizes", learn ? "true" : "false"); }
  // A limit of memory in bytes, beside the model; zero stands for any amount.
  Request& Memory(int64_t bytes) { return Option("memory", std::to_string(bytes)); }
  // Whether addend_model_attribute also finds what passes through every operator.
  Request& Operators(bool operators = true) { return Option("operators", operators ? "true" : "false"); }
  // Whether the plain model also runs on the baseline; the report then says how far the reference is from what the
  // model gives there: "reference_error".
  Request& VerifyReference(bool verify = true) { return Option("verify_reference", verify ? "true" : "false"); }
  // End: options
  // Begins a further example, for Model::Record and Model::CheckTrace: the inputs that follow belong to it.
  Request& NextExample() { return Set(addend_request_next_example(get())); }
  // Sets how the inputs of the example make up the arguments of the model: JSON as addend.h describes it.
  Request& Structure(const std::string& structure) {
    return Set(addend_request_set_structure(get(), structure.c_str()));
  }
  // Names the next component of the input that was added last, for people.
  Request& Name(const std::string& component) { return Set(addend_request_add_name(get(), component.c_str())); }
  // Names the components of the input that was added last, in their order.
  Request& Names(const std::vector<std::string>& components) {
    for (const std::string& component : components) Name(component);
    return *this;
  }
  // Asks for the composition of an inner tensor: a module by its path, an operator by its number or name.
  Request& Probe(const std::string& selector) { return Set(addend_request_add_probe(get(), selector.c_str())); }
  // A parameter of a live model, so that reports name operators by what they read.
  Request& Parameter(const std::string& name, const Tensor& tensor) {
    return Set(addend_request_add_parameter(get(), name.c_str(), tensor.get()));
  }
  // A buffer of a live model: like a parameter, but not learned.
  Request& Buffer(const std::string& name, const Tensor& tensor) {
    return Set(addend_request_add_buffer(get(), name.c_str(), tensor.get()));
  }
  // Who may end runs of this request.
  Request& CancelledBy(const Cancellation& cancellation) {
    return Set(addend_request_set_cancellation(get(), cancellation.get()));
  }
  // Asks for one of the model's results; results that are not asked for are left out. Without any call, all are
  // decomposed.
  Request& Output(const std::string& name) { return Set(addend_request_add_output(get(), name.c_str())); }
};

class Model;

// An attribution made ready for many rows; see addend.h.
class Plan : public Handle<addend_plan, addend_plan_release> {
 public:
  using Handle::Handle;

  // Attributes the plan's targets for the inputs of a request.
  Attribution Attribute(const Request& request) const {
    return Attribution(Made(addend_plan_attribute, get(), request.get()));
  }
  // Attributes the plan's targets for a tensor, which is the only input of the model.
  Attribution Attribute(const Tensor& value) const {
    Request request;
    request.Input(value);
    return Attribute(request);
  }
  // Attributes into float64 tensors over the caller's memory: [targets, components], and value, reference and leftover
  // of each target, [targets, 3].
  void AttributeInto(const Request& request, const Tensor& contributions) const {
    Check(addend_plan_attribute_into(get(), request.get(), contributions.get(), nullptr));
  }
  void AttributeInto(const Request& request, const Tensor& contributions, const Tensor& sums) const {
    Check(addend_plan_attribute_into(get(), request.get(), contributions.get(), sums.get()));
  }
};

// The attribution of every row of a data set, in shards that any engine may run; docs/jobs.md. One for each thread.
class Job : public Handle<addend_job, addend_job_release> {
 public:
  // Opens the plan of a job.
  explicit Job(const std::string& plan) : Handle(Made(addend_job_open, plan.c_str())) {}

  // Makes the plan of a job; what was made, as JSON. `options`: JSON, as addend_job_plan takes them.
  static std::string Plan(const std::string& plan, const std::string& model, const Request& request,
                          const std::string& options, const Context& context = {}) {
    return TextOf(addend_job_plan, context.get(), plan.c_str(), model.c_str(), request.get(), options.c_str());
  }
  // How far a job is, as JSON.
  static std::string Status(const std::string& plan) { return TextOf(addend_job_status, plan.c_str()); }
  // Checks all shards and puts them into one file; what was merged, as JSON.
  static std::string Merge(const std::string& plan) { return TextOf(addend_job_merge, plan.c_str()); }

  // How many shards it has.
  size_t NumShards() const { return addend_job_num_shards(get()); }
  // Computes a shard and commits it; its receipt, as JSON.
  std::string Run(int64_t shard, bool again = false) const {
    return TextOf(addend_job_run, get(), shard, again ? "{\"again\": true}" : nullptr);
  }
};

// A program: what a model did, to be read, kept and run again. `options` are JSON as addend.h describes it.
class Program : public Handle<addend_program, addend_program_release> {
 public:
  using Handle::Handle;

  // Loads a program from a folder that Save wrote.
  static Program Load(const std::string& folder) { return Program(Made(addend_program_load, folder.c_str())); }
  // Saves the program, with all tensors that it needs, in a folder.
  void Save(const std::string& folder) const { Check(addend_program_save(get(), folder.c_str())); }
  // A model that runs the program in place of the model that was recorded.
  inline Model AsModel() const;
  // Runs the program on other inputs. `options`: JSON, as addend_program_replay takes them.
  Results Replay(const Request& request, const std::string& options = "{}") const {
    return Results(Made(addend_program_replay, get(), request.get(), options.c_str()));
  }
  // Writes a TorchScript file, for LibTorch without this library.
  void ExportTorchScript(const std::string& path) const {
    Check(addend_program_export_torchscript(get(), path.c_str()));
  }
  // A copy of the program in another floating-point type.
  Program To(int32_t dtype) const { return Program(Made(addend_program_to, get(), dtype)); }
  // Lists, as JSON, what a replay would lack.
  std::string Requirements(const Request& request, const Context& context = {}) const {
    return TextOf(addend_program_requirements, context.get(), get(), request.get());
  }
  // How many operators the program calls.
  size_t num_operators() const { return addend_program_num_operators(get()); }

  // A result of the program: its name, its type and its sizes.
  struct Output {
    std::string name;            // that its result has
    int32_t dtype;               // one of addend_dtype
    std::vector<int64_t> sizes;  // in the recording
  };
  // The results of the program, in order.
  std::vector<Output> outputs() const {
    std::vector<Output> outputs(addend_program_num_outputs(get()));
    for (size_t k = 0; k < outputs.size(); ++k) {
      outputs[k] = {addend_program_output_name(get(), k), addend_program_output_dtype(get(), k),
                    Listed<int64_t>(addend_program_output_num_dims(get(), k), addend_program_output_size, get(), k)};
    }
    return outputs;
  }
  // The names of the program's tensors of a kind: "input", "parameter", "buffer", "constant", "result" or "part".
  std::vector<std::string> Names(const std::string& kind) const {
    std::vector<std::string> names;
    for (size_t k = 0; k < addend_program_num_values(get()); ++k) {
      if (addend_program_value_kind(get(), k) == kind) names.emplace_back(addend_program_value_name(get(), k));
    }
    return names;
  }
  // A short account of the program as a JSON object: how many operators and tensors, which inputs.
  std::string SummaryJson() const { return TextOf(addend_program_summary, get()); }
  // The operators under their source lines, as text. `options`: JSON, as addend_program_code_text takes them.
  std::string CodeText(const std::string& options = "{}") const {
    return TextOf(addend_program_code_text, get(), options.c_str());
  }
  // The operators under their source lines, as a JSON object.
  std::string CodeJson(const std::string& options = "{}") const {
    return TextOf(addend_program_code_json, get(), options.c_str());
  }
  // The graph as a JSON object. `options`: JSON, as addend_program_graph_json takes them.
  std::string GraphJson(const std::string& options = "{}") const {
    return TextOf(addend_program_graph_json, get(), options.c_str());
  }
  // The graph for Graphviz.
  std::string GraphDot(const std::string& options = "{}") const {
    return TextOf(addend_program_graph_dot, get(), options.c_str());
  }
  // The graph as a page for a browser, which needs nothing else.
  std::string GraphHtml(const std::string& options = "{}") const {
    return TextOf(addend_program_graph_html, get(), options.c_str());
  }
};

// A model on the CPU, in evaluation mode, which never changes. Any number of threads may use one. It is a program: run
// only what you trust.
class Model : public Handle<addend_model, addend_model_release> {
 public:
  using Handle::Handle;

  // Loads a TorchScript file, a program that torch.export saved (.pt2), or an ONNX model. `dtype` 0: as it is.
  static Model Load(const std::string& path, int32_t dtype = 0) {
    return Model(Made(addend_model_load, path.c_str(), dtype));
  }
  // Loads the bytes of such a file.
  static Model LoadBytes(const void* data, size_t size, int32_t dtype = 0) {
    return Model(Made(addend_model_load_bytes, data, size, dtype));
  }
  // The SHA-256 of a file or of a folder of a program, as plans and records have it; see addend.h.
  static std::string Sha256(const std::string& path) { return TextOf(addend_model_sha256, path.c_str()); }
  // A copy on another device ("": the same) or of another dtype (0: the same).
  Model To(const std::string& device, int32_t dtype = 0) const {
    return Model(Made(addend_model_to, get(), dtype, device.empty() ? nullptr : device.c_str()));
  }
  // A model that runs other methods than forward().
  Model Methods(const std::vector<std::string>& methods) const {
    std::string names;
    for (const std::string& method : methods) names += (names.empty() ? "" : ",") + method;
    return Model(Made(addend_model_methods, get(), names.c_str()));
  }
  // The arguments that the model takes, in order.
  std::vector<std::string> input_names() const {
    return Listed<std::string>(addend_model_num_inputs(get()), addend_model_input_name, get());
  }
  // Lists, as JSON, what a run would lack.
  std::string Requirements(const Request& request, const Context& context = {}) const {
    return TextOf(addend_model_requirements, context.get(), get(), request.get());
  }
  // Runs the plain model: its tensors, without compositions.
  Results Run(const Request& request) const { return Results(Made(addend_model_run, get(), request.get())); }
  // Decomposes the outputs of the model, and the probes of the request: compositions with their report.
  Results Decompose(const Request& request, const Context& context = {}) const {
    return Results(Made(addend_model_decompose, context.get(), get(), request.get()));
  }
  // Forgets what was kept for requests with KeepReferences().
  void ForgetReferences() const { Check(addend_model_forget_references(get())); }
  // Attributes the targets of the request to every element of its inputs, by one sweep backward.
  Attribution Attribute(const Request& request, const Context& context = {}) const {
    return Attribution(Made(addend_model_attribute, context.get(), get(), request.get()));
  }
  // Plans attributions of requests like this one.
  Plan MakePlan(const Request& request, const Context& context = {}) const {
    return Plan(Made(addend_model_plan, context.get(), get(), request.get()));
  }
  // Records the model as a program. Further examples of the request teach the program other sizes.
  Program Record(const Request& request) const { return Program(Made(addend_model_record, get(), request.get())); }
  // Checks, on further examples of the request, whether a recording stands for the model: JSON.
  std::string CheckTrace(const Request& request, const std::string& options = "{}") const {
    return TextOf(addend_model_check_trace, get(), request.get(), options.c_str());
  }
  // Finds the interactions of groups in one target, {"format": "addend.interactions", ...}; see addend.h. Without
  // concepts each component is a group.
  std::string InteractionsJson(const Request& request, const Concepts& concepts = {},
                               const Context& context = {}) const {
    return TextOf(addend_model_interactions, context.get(), get(), request.get(), concepts.get());
  }
  // Computes the exact Shapley values for the first output.
  Composition Shapley(const Request& request) const {
    return Composition(Made(addend_model_shapley, get(), request.get()));
  }
};

inline Model Program::AsModel() const { return Model(Made(addend_program_model, get())); }

// The arguments of one call, in order: Call("aten::softmax", Arguments().Add(x).Add(int64_t{-1})).
class Arguments : public Builder<Arguments, addend_arguments, addend_arguments_release> {
 public:
  // No arguments yet.
  Arguments() : Builder(Made(addend_arguments_create)) {}

  // Adds an argument: the next one of the operator, or that of the name.
  Arguments& Add(const Composition& value, const char* name = nullptr) {
    return Set(addend_arguments_add_composition(get(), name, value.get()));
  }
  Arguments& Add(const Tensor& value, const char* name = nullptr) {
    return Set(addend_arguments_add_tensor(get(), name, value.get()));
  }
  Arguments& Add(int64_t value, const char* name = nullptr) {
    return Set(addend_arguments_add_i64(get(), name, value));
  }
  Arguments& Add(double value, const char* name = nullptr) { return Set(addend_arguments_add_f64(get(), name, value)); }
  Arguments& Add(bool value, const char* name = nullptr) {
    return Set(addend_arguments_add_bool(get(), name, value ? 1 : 0));
  }
  Arguments& Add(const std::vector<int64_t>& values, const char* name = nullptr) {
    return Set(addend_arguments_add_i64s(get(), name, values.data(), values.size()));
  }
  // Refused, because a literal would be taken for a bool: AddText takes it.
  Arguments& Add(const char* text, const char* name = nullptr) = delete;
  // Adds a text.
  Arguments& AddText(const std::string& text, const char* name = nullptr) {
    return Set(addend_arguments_add_str(get(), name, text.c_str()));
  }
  // One of addend_dtype.
  Arguments& AddDtype(int32_t dtype, const char* name = nullptr) {
    return Set(addend_arguments_add_dtype(get(), name, dtype));
  }
  // Begins a list: the arguments that are added up to EndList() are its elements.
  Arguments& BeginList(const char* name = nullptr) { return Set(addend_arguments_begin_list(get(), name)); }
  // Ends the list that BeginList began.
  Arguments& EndList() { return Set(addend_arguments_end_list(get())); }
  // Adds None, for an optional argument.
  Arguments& AddNone(const char* name = nullptr) { return Set(addend_arguments_add_none(get(), name)); }
};

// Calls an operator by its name; where an argument is a composition, results that have components are, too.
inline Results Call(const std::string& op, const Arguments& arguments, const Context& context = {}) {
  return Results(Made(addend_call, context.get(), op.c_str(), arguments.get()));
}

// Computes the exact Shapley values for the first result of such a call.
inline Composition Shapley(const std::string& op, const Arguments& arguments) {
  return Composition(Made(addend_call_shapley, op.c_str(), arguments.get()));
}

// Base of the scopes that record what this thread calls, and under which module.
class ModuleScope : public Handle<addend_trace, addend_trace_release> {
 public:
  using Handle::Handle;

  // Sets the module that the thread runs now: "encoder.layers.3"; "" outside.
  void SetModule(const std::string& module_path) { Check(addend_trace_set_module(get(), module_path.c_str())); }
  // Tells what a module has just returned, in order; see addend_trace_add_module_output.
  void AddModuleOutputs(const std::string& module_path, const std::vector<Tensor>& tensors) {
    if (tensors.empty()) Check(addend_trace_add_module_output(get(), module_path.c_str(), 0, nullptr));
    for (size_t k = 0; k < tensors.size(); ++k) {
      Check(addend_trace_add_module_output(get(), module_path.c_str(), static_cast<int64_t>(k), tensors[k].get()));
    }
  }
};

// Base of the scopes of live models: every LibTorch operator that this thread calls during the life of a scope is
// recorded, whoever calls it, Call on plain tensors included. A scope belongs to the thread that begins it. Its inputs,
// parameters, buffers and outputs are live tensors, known by their memory.
class LiveScope : public ModuleScope {
 public:
  // Names an output of the model.
  void AddOutput(const std::string& name, const Tensor& tensor) {
    Check(addend_trace_add_output(get(), name.c_str(), tensor.get()));
  }
  // A line that the notes of the report shall hold too.
  void AddNote(const std::string& note) { Check(addend_trace_add_note(get(), note.c_str())); }
  // Baseline of an input, as the model would be given it. Ends the recording, so that the model can be run there and
  // AddOnBaseline be told what it gave: the report then says how far the reference is from that.
  Tensor Baseline(size_t input) { return Tensor(Made(addend_trace_baseline, get(), input)); }
  // `name`: of an output that is named already.
  void AddOnBaseline(const std::string& name, const Tensor& tensor) {
    Check(addend_trace_add_on_baseline(get(), name.c_str(), tensor.get()));
  }
  // Begins the second run of the model, where the request splits a tensor inside it: the model runs once more with the
  // same numbers, and its outputs are named again.
  void RunAgain() { Check(addend_trace_again(get())); }

 protected:
  using Begins = addend_status* (*)(const addend_context*, const addend_request*, addend_trace**);
  LiveScope(Begins begins, const Request& request, const Context& context)
      : ModuleScope(Made(begins, context.get(), request.get())) {}
};

// A scope that decomposes a live model: the outputs that are named, then the probes.
class TracingScope : public LiveScope {
 public:
  // Begins recording.
  explicit TracingScope(const Request& request, const Context& context = {})
      : LiveScope(addend_trace_begin, request, context) {}

  // Stops recording.
  Results End() { return Results(Made(addend_trace_end, get())); }
};

// A scope that attributes a live model: the targets of the request, which are elements of the first output that is
// named unless Request::Explained says otherwise.
class AttributionScope : public LiveScope {
 public:
  // Begins recording.
  explicit AttributionScope(const Request& request, const Context& context = {})
      : LiveScope(addend_trace_begin_attribution, request, context) {}

  // Stops recording.
  Attribution End() { return Attribution(Made(addend_trace_end_attribution, get())); }
  // Stops recording, and plans attributions for inputs of the same sizes.
  Plan EndPlan() { return Plan(Made(addend_trace_end_plan, get())); }
};

// A scope that records a live model as a program. The inputs of the request are those of the program.
class RecordingScope : public ModuleScope {
 public:
  // Begins recording.
  explicit RecordingScope(const Request& request)
      : ModuleScope(Made(addend_trace_record, request.get(), nullptr, nullptr, nullptr)) {}

  // Says that a tensor is an output of the program; several come in this order.
  void AddOutput(const Tensor& tensor) { Check(addend_trace_add_output(get(), "output", tensor.get())); }
  // Stops recording.
  Program End() { return Program(Made(addend_trace_end_program, get())); }
};

}  // namespace addend::api

#endif  // ADDEND_C_API_ADDEND_HPP_
