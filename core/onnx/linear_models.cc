// Linear models and support vector machines of ai.onnx.ml.
#include <ATen/ATen.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/text.h"
#include "core/onnx/context.h"
#include "core/onnx/families.h"
#include "core/onnx/operands.h"
#include "core/onnx/scores.h"

namespace addend::onnx {
namespace {

using at::Tensor;

// Input 0 as rows in the type of the coefficients: double precision is computed in single precision.
Tensor FloatRows(const Context& context) { return InType(RowsOf(context), context.TypeOf(DataType::kFloat)); }

// Coefficients [outputs, features] from a list.
Tensor CoefficientRows(const Context& context, int64_t outputs) {
  const Tensor all = FloatsTensor(context, "coefficients");
  if (outputs < 1 || all.numel() == 0 || all.numel() % outputs != 0) {
    throw context.Invalid(absl::StrCat("the coefficients are ", all.numel(), " numbers for ", outputs, " results"));
  }
  return all.reshape({outputs, -1});
}

// ------------------------------------------------------------------------------------------------------ linear models

std::vector<Tensor> PrepareLinearRegressor(const Context& context) {
  const int64_t targets = context.IntAttribute("targets", 1);
  RequireTransform(context, targets, PostTransformOf(context));
  Tensor intercepts = FloatsTensor(context, "intercepts");
  if (intercepts.numel() == 0) intercepts = at::zeros({targets}, at::kFloat);
  if (intercepts.numel() != targets) throw context.Invalid("there is not one intercept for each target");
  return {CoefficientRows(context, targets), intercepts};
}

Results LinearRegressor(const Context& context) {
  const Tensor y = at::linear(FloatRows(context), context.Prepared(0), context.Prepared(1));
  return Transformed(context, y, PostTransformOf(context));
}

std::vector<Tensor> PrepareLinearClassifier(const Context& context) {
  const int64_t num_labels = NumLabels(context, "classlabels_ints");
  const Tensor intercepts = FloatsTensor(context, "intercepts");
  const PostTransform transform = PostTransformOf(context);
  const int64_t num_scores = intercepts.numel();
  if (num_scores == 1) {
    if (num_labels != 2) throw context.Invalid(absl::StrCat("it has one score, and ", num_labels, " classes"));
    // The standard makes it -s and s, ONNX Runtime 1 - s and s.
    if (transform != PostTransform::kLogistic) {
      throw context.Refused(
          "two classes have one score, and ONNX Runtime makes two of it otherwise than the standard says; write the "
          "model with a score for each class, or with post_transform LOGISTIC");
    }
  } else if (num_scores != num_labels) {
    throw context.Invalid(absl::StrCat("it has ", num_scores, " intercepts, and ", num_labels, " classes"));
  }
  return {CoefficientRows(context, num_scores), intercepts, LabelsOf(context, "classlabels_ints")};
}

Results LinearClassifier(const Context& context) {
  const Tensor scores = at::linear(FloatRows(context), context.Prepared(0), context.Prepared(1));
  const bool of_two = scores.size(1) == 1;
  Tensor label;
  if (context.Wants(0)) {
    const Tensor classes = of_two ? at::gt(at::select(scores, 1, 0), 0).to(at::kLong) : at::argmax(scores, 1);
    label = LabelAt(context.Prepared(2), classes);
  }
  const PostTransform transform = PostTransformOf(context);
  return {label,
          of_two ? ScoresOfTwo(scores, /*is_probability=*/false, transform) : Transformed(context, scores, transform)};
}

// ------------------------------------------------------------------------------------------- support vector machines

// The attribute kernel_params; they may be left out for a linear kernel.
struct KernelParameters {
  double gamma = 0;
  double constant = 0;
  double degree = 0;
};

KernelParameters ParametersOf(const Context& context) {
  const std::vector<double> numbers = context.FloatsAttribute("kernel_params");
  if (numbers.empty()) return {};
  if (numbers.size() != 3) throw context.Invalid("kernel_params are not three numbers");
  return {numbers[0], numbers[1], numbers[2]};
}

enum class Kernel { kLinear, kPoly, kRbf, kSigmoid };

Kernel KernelOf(const Context& context) {
  const std::string word = context.TextAttribute("kernel_type", "LINEAR");
  if (word == "LINEAR") return Kernel::kLinear;
  if (word == "POLY") return Kernel::kPoly;
  if (word == "RBF") return Kernel::kRbf;
  if (word == "SIGMOID") return Kernel::kSigmoid;
  throw context.Invalid(absl::StrCat("the kernel_type ", Quoted(word), " is none"));
}

// [rows, vectors]: how near each row is to each support vector.
Tensor KernelOfRows(const Context& context, const Tensor& x, const Tensor& vectors) {
  const KernelParameters own = ParametersOf(context);
  const auto product = [&] { return at::matmul(x, at::t(vectors)); };
  switch (KernelOf(context)) {
    case Kernel::kPoly:
      return at::pow(at::add(at::mul(product(), own.gamma), own.constant), own.degree);
    case Kernel::kRbf: {
      const Tensor apart = at::sub(at::unsqueeze(x, 1), vectors);
      return at::exp(at::mul(at::sum(at::square(apart), -1), -own.gamma));
    }
    case Kernel::kSigmoid:
      return at::tanh(at::add(at::mul(product(), own.gamma), own.constant));
    default:
      return product();
  }
}

// Support vectors [count, features] from a list.
Tensor VectorRows(const Context& context, int64_t count) {
  const Tensor all = FloatsTensor(context, "support_vectors");
  if (all.numel() == 0 || all.numel() % count != 0) {
    throw context.Invalid(absl::StrCat("the support_vectors are ", all.numel(), " numbers for ", count, " vectors"));
  }
  return all.reshape({count, -1});
}

std::vector<Tensor> PrepareSvmRegressor(const Context& context) {
  if (PostTransformOf(context) != PostTransform::kNone) {
    throw context.Refused("ONNX Runtime leaves out the post_transform of a support vector machine; write it with NONE");
  }
  KernelOf(context);
  ParametersOf(context);
  const int64_t count = context.IntAttribute("n_supports", 0);
  const Tensor rho = FloatsTensor(context, "rho");
  if (rho.numel() != 1) throw context.Invalid("rho is not one number");
  if (count <= 0) return {CoefficientRows(context, 1), rho};
  const Tensor coefficients = CoefficientRows(context, 1);
  if (coefficients.size(1) != count) throw context.Invalid("there is not one coefficient for each support vector");
  return {coefficients, rho, VectorRows(context, count)};
}

Results SvmRegressor(const Context& context) {
  Tensor x = FloatRows(context);
  if (context.IntAttribute("n_supports", 0) > 0) x = KernelOfRows(context, x, context.Prepared(2));
  const Tensor y = at::linear(x, context.Prepared(0), context.Prepared(1));
  if (context.IntAttribute("one_class", 0) == 0) return y;
  // 1 above zero, else -1.
  return at::sub(at::mul(at::heaviside(y, at::zeros({}, y.options())), 2), 1);
}

// [vectors, pairs of classes]: what a support vector adds to the score of one class against another. Of two classes
// each has a list of coefficients for the vectors of the other.
Tensor CoefficientsOfPairs(const Context& context, const std::vector<int64_t>& vectors_per_class, int64_t vectors) {
  const auto num_classes = static_cast<int64_t>(vectors_per_class.size());
  const Tensor lists = CoefficientRows(context, num_classes - 1);
  if (lists.size(1) != vectors) throw context.Invalid("there are other coefficients than support vectors");
  std::vector<int64_t> starts = {0};
  for (const int64_t count : vectors_per_class) starts.push_back(starts.back() + count);
  const Tensor all = at::zeros({vectors, num_classes * (num_classes - 1) / 2}, at::kFloat);
  int64_t pair = 0;
  const auto copy = [&](int64_t of, int64_t list) {
    const int64_t first = starts[static_cast<size_t>(of)], count = vectors_per_class[static_cast<size_t>(of)];
    all.select(1, pair).narrow(0, first, count).copy_(lists.select(0, list).narrow(0, first, count));
  };
  for (int64_t i = 0; i < num_classes; ++i) {
    for (int64_t j = i + 1; j < num_classes; ++j, ++pair) {
      copy(i, j - 1);
      copy(j, i);
    }
  }
  return all.t().contiguous();
}

// How many support vectors a classifier has; none: it is linear.
int64_t NumVectors(const Context& context) {
  int64_t vectors = 0;
  for (const int64_t count : context.IntsAttribute("vectors_per_class")) {
    if (count < 0) throw context.Invalid("vectors_per_class has a negative number");
    vectors += count;
  }
  return vectors;
}

std::vector<Tensor> PrepareSvmClassifier(const Context& context) {
  const int64_t num_classes = NumLabels(context, "classlabels_ints");
  if (num_classes < 2) throw context.Refused("it has one class, which is no choice");
  const PostTransform transform = PostTransformOf(context);
  KernelOf(context);
  ParametersOf(context);
  if (context.HasAttribute("prob_a") && !context.FloatsAttribute("prob_a").empty()) {
    throw context.Refused(
        "the probabilities of a support vector machine (prob_a) are found by steps that end somewhere near them, "
        "and other readers end elsewhere; export it without probabilities, and explain its scores");
  }
  const Tensor rho = FloatsTensor(context, "rho");
  const std::vector<int64_t> per_class = context.IntsAttribute("vectors_per_class");
  const int64_t vectors = NumVectors(context);
  const Tensor labels = LabelsOf(context, "classlabels_ints");
  if (vectors == 0) {
    if (num_classes == 2) {
      throw context.Refused(
          "it is linear and of two classes, which ONNX Runtime labels otherwise than by their scores; "
          "write it as a LinearClassifier");
    }
    if (rho.numel() < 1) throw context.Invalid("rho is empty");
    return {CoefficientRows(context, num_classes), rho.narrow(0, 0, 1).expand({num_classes}).contiguous(), labels};
  }
  if (static_cast<int64_t>(per_class.size()) != num_classes) {
    throw context.Invalid("vectors_per_class has not one number for each class");
  }
  if (num_classes == 2) RequireTransformOfTwo(context, transform);
  const Tensor coefficients = CoefficientsOfPairs(context, per_class, vectors);
  if (rho.numel() != coefficients.size(0)) throw context.Invalid("rho has not one number for each two classes");
  return {coefficients, rho, labels, VectorRows(context, vectors)};
}

// The class that wins most of its pairs [rows, pairs]; of several the first.
Tensor WinnerOf(const Tensor& scores, int64_t num_classes) {
  const Tensor wins = at::gt(scores, 0).to(at::kLong);
  std::vector<Tensor> votes(static_cast<size_t>(num_classes));
  int64_t pair = 0;
  const auto add = [&](int64_t to, const Tensor& vote) {
    Tensor& own = votes[static_cast<size_t>(to)];
    own = own.defined() ? at::add(own, vote) : vote;
  };
  for (int64_t i = 0; i < num_classes; ++i) {
    for (int64_t j = i + 1; j < num_classes; ++j, ++pair) {
      const Tensor win = at::select(wins, 1, pair);
      add(i, win);
      add(j, at::rsub(win, 1));
    }
  }
  return at::argmax(at::stack(votes, 1), 1);
}

Results SvmClassifier(const Context& context) {
  const int64_t num_classes = NumLabels(context, "classlabels_ints");
  const bool is_linear = NumVectors(context) == 0;
  Tensor x = FloatRows(context);
  if (!is_linear) x = KernelOfRows(context, x, context.Prepared(3));
  const Tensor scores = at::linear(x, context.Prepared(0), context.Prepared(1));
  Tensor label;
  if (context.Wants(0) && context.Prepared(2).numel() > 0) {
    label = LabelAt(context.Prepared(2), is_linear ? at::argmax(scores, 1) : WinnerOf(scores, num_classes));
  }
  const PostTransform transform = PostTransformOf(context);
  return {label, scores.size(1) == 1 ? ScoresOfTwo(scores, /*is_probability=*/false, transform)
                                     : Transformed(context, scores, transform)};
}

}  // namespace

void RegisterLinearModels(OperatorTable& table) {
  const auto add = [&](const char* name, OperatorFunction function) -> OperatorRow& {
    return table.AddTo(kMachineLearningDomain, name, 1, function);
  };
  add("LinearRegressor", LinearRegressor)
      .Attributes({"coefficients", "intercepts", "targets", "post_transform"})
      .PreparedBy(PrepareLinearRegressor, {"coefficients", "intercepts"});
  add("LinearClassifier", LinearClassifier)
      .Attributes(
          {"coefficients", "intercepts", "multi_class", "classlabels_ints", "classlabels_strings", "post_transform"})
      .PreparedBy(PrepareLinearClassifier, {"coefficients", "intercepts"});
  add("SVMRegressor", SvmRegressor)
      .Attributes({"coefficients", "kernel_params", "kernel_type", "n_supports", "one_class", "post_transform", "rho",
                   "support_vectors"})
      .PreparedBy(PrepareSvmRegressor, {"coefficients", "support_vectors"});
  add("SVMClassifier", SvmClassifier)
      .Attributes({"classlabels_ints", "classlabels_strings", "coefficients", "kernel_params", "kernel_type",
                   "post_transform", "prob_a", "prob_b", "rho", "support_vectors", "vectors_per_class"})
      .PreparedBy(PrepareSvmClassifier, {"coefficients", "support_vectors"});
}

}  // namespace addend::onnx
