// Signals: Fourier transforms, windows, mel filters. Complex numbers are pairs in a last dimension of size 2.
#include <ATen/ATen.h>

#include <cmath>

#include "core/onnx/context.h"
#include "core/onnx/families.h"
#include "core/onnx/operands.h"

namespace addend::onnx {
namespace {

using at::Tensor;

constexpr double kPi = 3.14159265358979323846;

// Numbers without their last dimension: complex where it is 2, real where it is 1.
Tensor Samples(const Context& context, const Tensor& x) {
  if (x.dim() < 2 || (x.size(-1) != 1 && x.size(-1) != 2)) {
    throw context.Invalid("the last dimension of the signal is neither 1 nor 2");
  }
  return x.size(-1) == 1 ? at::squeeze(x, -1) : at::view_as_complex(x.contiguous());
}

Tensor Pairs(const Tensor& complex) { return at::view_as_real(at::resolve_conj(complex)); }

// The transform forward: of real numbers the half that says all, if it is to be one-sided.
Tensor Forward(const Context& context, const Tensor& samples, int64_t length, int64_t axis, bool one_sided) {
  if (!one_sided) return Pairs(at::fft_fft(samples, length, axis));
  if (samples.is_complex()) throw context.Invalid("a signal of complex numbers has no one-sided transform");
  return Pairs(at::fft_rfft(samples, length, axis));
}

Results Dft(const Context& context) {
  const Tensor samples = Samples(context, context.Tensor(0));
  const int64_t rank = samples.dim() + 1;
  const int64_t axis =
      context.Axis(context.version() < 20 ? context.IntAttribute("axis", 1) : context.Integer(2, -2), rank);
  if (axis == rank - 1) throw context.Invalid("the axis is that of the complex numbers");
  const bool inverse = context.FlagAttribute("inverse", false);
  const bool one_sided = context.FlagAttribute("onesided", false);
  const int64_t size = samples.size(axis);
  const int64_t length = context.Integer(1, inverse && one_sided ? 2 * (size - 1) : size);
  if (!inverse) return Forward(context, samples, length, axis, one_sided);
  if (one_sided) return at::unsqueeze(at::fft_irfft(samples, length, axis), -1);
  return Pairs(at::fft_ifft(samples, length, axis));
}

// Transforms of frames that begin `frame_step` samples after each other.
Results Stft(const Context& context) {
  const Tensor samples = Samples(context, context.Tensor(0));
  if (samples.dim() != 2) throw context.Invalid("the signal has not the sizes of a batch and a length");
  const int64_t step = context.Integer(1);
  const Tensor window = context.OptionalTensor(2);
  const int64_t length = context.Integer(3, window.defined() ? window.numel() : samples.size(1));
  if (window.defined() && window.numel() != length) throw context.Invalid("the window is not as long as a frame");
  if (step < 1 || length < 1 || length > samples.size(1)) {
    throw context.Invalid("the frames have no length or no step, or are longer than the signal");
  }
  Tensor frames = samples.unfold(1, length, step);
  if (window.defined()) frames = at::mul(frames, window);
  return Forward(context, frames, length, 2, context.FlagAttribute("onesided", true));
}

// --------------------------------------------------------------------------------------------------------------
// windows

// A window a - b cos x + c cos 2x, where x runs over a turn: to its end, or to the place before if it is periodic.
Results Window(const Context& context, double a, double b, double c) {
  const int64_t size = context.Integer(0);
  const int64_t turn = context.FlagAttribute("periodic", true) ? size : size - 1;
  const c10::ScalarType type = context.TypeAttribute("output_datatype", DataType::kFloat);
  const Tensor x = at::mul(at::arange(size, context.Options(at::kDouble)), 2 * kPi / static_cast<double>(turn));
  Tensor window = at::rsub(at::mul(at::cos(x), b), a);
  if (c != 0) window = at::add(window, at::mul(at::cos(at::mul(x, 2)), c));
  return InType(window, type);
}

Results HannWindow(const Context& context) { return Window(context, 0.5, 0.5, 0); }

Results HammingWindow(const Context& context) { return Window(context, 25.0 / 46, 21.0 / 46, 0); }

Results BlackmanWindow(const Context& context) { return Window(context, 0.42, 0.5, 0.08); }

// ---------------------------------------------------------------------------------------------------------------
// filters

// Filters with the shape of a triangle, evenly apart on the mel scale: bins of a spectrum x filters.
Results MelWeightMatrix(const Context& context) {
  const int64_t filters = context.Integer(0);
  const int64_t length = context.Integer(1);
  const auto rate = static_cast<double>(context.Integer(2));
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double lowest = mel(context.Real(3));
  const double apart = (mel(context.Real(4)) - lowest) / static_cast<double>(filters + 2);
  const c10::ScalarType type = context.TypeAttribute("output_datatype", DataType::kFloat);
  const at::TensorOptions options = context.Options(at::kDouble);

  // Places of the triangles' corners in the spectrum: whole numbers.
  const Tensor mels = at::add(at::mul(at::arange(filters + 2, options), apart), lowest);
  const Tensor hertz = at::mul(at::expm1(at::mul(mels, std::log(10.0) / 2595)), 700);
  const Tensor corners = at::floor(at::mul(hertz, static_cast<double>(length + 1) / rate));
  const auto corner = [&](int64_t k) { return at::narrow(corners, 0, k, filters); };
  const Tensor left = corner(0), middle = corner(1), right = corner(2);

  const Tensor bins = at::unsqueeze(at::arange(length / 2 + 1, options), 1);
  const Tensor up = at::div(at::sub(bins, left), at::clamp_min(at::sub(middle, left), 1));
  const Tensor down = at::div(at::sub(right, bins), at::clamp_min(at::sub(right, middle), 1));
  // A triangle has its full height in the middle, also where it has no width.
  const Tensor sides = at::clamp_min(at::minimum(up, down), 0);
  return InType(at::masked_fill(sides, at::eq(bins, middle), 1), type);
}

}  // namespace

void RegisterSignal(OperatorTable& table) {
  table.Add("DFT", 17, Dft).Inputs(1, 2).Attributes({"axis", "inverse", "onesided"});
  table.Add("DFT", 20, Dft).Inputs(1, 3).Attributes({"inverse", "onesided"});
  table.Add("STFT", 17, Stft).Inputs(2, 4).Attributes({"onesided"});
  const std::vector<std::string> attributes{"output_datatype", "periodic"};
  table.Add("HannWindow", 17, HannWindow).Attributes(attributes).Known(KnownIf::kInputsConstant);
  table.Add("HammingWindow", 17, HammingWindow).Attributes(attributes).Known(KnownIf::kInputsConstant);
  table.Add("BlackmanWindow", 17, BlackmanWindow).Attributes(attributes).Known(KnownIf::kInputsConstant);
  table.Add("MelWeightMatrix", 17, MelWeightMatrix)
      .Inputs(5)
      .Attributes({"output_datatype"})
      .Known(KnownIf::kInputsConstant);
}

}  // namespace addend::onnx
