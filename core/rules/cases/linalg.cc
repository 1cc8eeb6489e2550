#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/diag_embed.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/linalg_lu_factor.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/ones_like.h>

#include <tuple>

#include "core/rules/cases/cases.h"

namespace addend {
namespace {

at::Tensor Transposed(const at::Tensor& t) { return t.transpose(-2, -1); }

at::Tensor Eye(const at::Tensor& like) { return at::eye(like.size(-2), like.size(-1), like.options()); }

// Both ends drawn by one function.
template <typename One>
GivenArgument Ends(One one) {
  const at::Tensor value = one();
  return {value, one()};
}

// Far from singular, along the whole line.
GivenArgument Regular(Draw& d, const Sizes& sizes) {
  return Ends([&] {
    const at::Tensor noise = d.Uniform(sizes, -0.5, 0.5);
    return noise + 3 * Eye(noise);
  });
}

GivenArgument Definite(Draw& d, const Sizes& sizes) {
  return Ends([&] {
    const at::Tensor noise = d.Uniform(sizes, -0.5, 0.5);
    return noise + Transposed(noise) + 4 * Eye(noise);
  });
}

GivenArgument LowerTriangular(Draw& d, const Sizes& sizes) {
  return Ends([&] {
    const at::Tensor noise = d.Uniform(sizes, -0.5, 0.5);
    return noise.tril() + 2 * Eye(noise);
  });
}

// Singular values 1, 2, 3 ... and a reference near by, so that none of them meet, and that LAPACK turns no vector on
// the way.
GivenArgument Separate(Draw& d, const Sizes& sizes, bool symmetric) {
  const auto noise = [&](double scale) {
    const at::Tensor drawn = d.Uniform(sizes, -scale, scale);
    return symmetric ? drawn + Transposed(drawn) : drawn;
  };
  const at::Tensor basis = noise(1);
  const int64_t n = std::min(basis.size(-2), basis.size(-1));
  const at::Tensor spread = at::diag_embed(at::arange(1, n + 1, basis.options()));
  const at::Tensor q = std::get<0>(at::linalg_qr(basis));
  at::Tensor value;
  if (symmetric) {
    value = q.matmul(spread).matmul(Transposed(q));
    value = (value + Transposed(value)) / 2;
  } else {
    const at::Tensor p = std::get<0>(at::linalg_qr(Transposed(basis)));
    value = q.narrow(-1, 0, n).matmul(spread).matmul(Transposed(p.narrow(-1, 0, n)));
  }
  return {value, value + noise(0.02)};
}

// A compact LU factor near that of a matrix that needs row exchanges, with the exchanges.
std::pair<GivenArgument, at::Tensor> Factors(Draw& d, const Sizes& sizes) {
  const at::Tensor noise = d.Uniform(sizes, -0.5, 0.5);
  const auto parts = at::linalg_lu_factor((noise + 3 * Eye(noise)).flip(-2));
  const at::Tensor lu = std::get<0>(parts);
  return {{lu, lu + d.Uniform(sizes, -0.3, 0.3)}, std::get<1>(parts)};
}

}  // namespace

// One case, one line, as far as it goes.
// clang-format off

void AddLinalg(std::vector<Case>* cases) {
  const std::vector<Case> all = {
      // Products.
      {"aten::vdot", "", [](Draw& d) -> Arguments { return {d.Moving({4}), d.Moving({4})}; }},
      {"aten::addbmm", "", [](Draw& d) -> Arguments { return {d.Moving({3, 5}), d.Moving({2, 3, 4}), d.Moving({2, 4, 5}), 0.5, 2.0}; }},
      {"aten::addbmm", "broadcast", [](Draw& d) -> Arguments { return {d.Moving({1}), d.Moving({2, 3, 4}), d.Moving({2, 4, 5}), 2, 3}; }},
      {"aten::addbmm", "no_addend", [](Draw& d) -> Arguments { return {d.Moving({3, 5}), d.Moving({2, 3, 4}), d.Moving({2, 4, 5}), 0, 1}; }},
      {"aten::addr", "", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), d.Moving({3}), d.Moving({4}), 0.5, 2.0}; }},
      {"aten::addr", "broadcast", [](Draw& d) -> Arguments { return {d.Moving({4}), d.Moving({3}), d.Moving({4})}; }},
      {"aten::addr", "number", [](Draw& d) -> Arguments { return {d.Moving({}), d.Moving({3}), d.Moving({4}), 2, 3}; }},
      {"aten::linalg_cross", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.Moving({2, 3})}; }},
      {"aten::linalg_cross", "broadcast", [](Draw& d) -> Arguments { return {d.Moving({1, 3, 4}), d.Moving({2, 3, 1}), 1}; }},
      {"aten::trace", "", [](Draw& d) -> Arguments { return {d.Moving({3, 4})}; }},
      // Inverses.
      {"aten::linalg_inv_ex", "", [](Draw& d) -> Arguments { return {Regular(d, {4, 4})}; }},
      {"aten::linalg_inv_ex", "batch", [](Draw& d) -> Arguments { return {Regular(d, {2, 3, 3, 3})}; }},
      {"aten::linalg_inv_ex", "empty", [](Draw& d) -> Arguments { return {d.Moving({2, 0, 0})}; }},
      {"aten::linalg_pinv.atol_rtol_float", "", [](Draw& d) -> Arguments { return {Regular(d, {4, 4}), kNone, kNone}; }},
      {"aten::linalg_pinv.atol_rtol_float", "tall", [](Draw& d) -> Arguments { return {Regular(d, {2, 5, 3}), kNone, kNone}; }},
      {"aten::linalg_pinv.atol_rtol_float", "wide", [](Draw& d) -> Arguments { return {Regular(d, {3, 5}), 1e-12, kNone}; }},
      {"aten::linalg_pinv.atol_rtol_float", "hermitian", [](Draw& d) -> Arguments { return {Definite(d, {4, 4}), kNone, kNone, true}; }},
      {"aten::linalg_pinv.atol_rtol_tensor", "", [](Draw& d) -> Arguments { return {Regular(d, {2, 4, 3}), kNone, kNone}; }},
      // Linear systems.
      {"aten::linalg_solve", "", [](Draw& d) -> Arguments { return {Regular(d, {4, 4}), d.Moving({4, 2})}; }},
      {"aten::linalg_solve", "vector", [](Draw& d) -> Arguments { return {Regular(d, {4, 4}), d.Moving({4})}; }},
      {"aten::linalg_solve", "batch", [](Draw& d) -> Arguments { return {Regular(d, {3, 4, 4}), d.Moving({2, 3, 4, 2})}; }},
      {"aten::linalg_solve", "vectors", [](Draw& d) -> Arguments { return {Regular(d, {3, 4, 4}), d.Moving({3, 4})}; }},
      {"aten::linalg_solve", "broadcast", [](Draw& d) -> Arguments { return {Regular(d, {2, 1, 4, 4}), d.Moving({3, 4, 1})}; }},
      {"aten::linalg_solve", "right", [](Draw& d) -> Arguments { return {Regular(d, {2, 4, 4}), d.Moving({3, 4}), false}; }},
      {"aten::linalg_solve_ex", "", [](Draw& d) -> Arguments { return {Regular(d, {2, 3, 3}), d.Moving({2, 3, 2})}; }},
      {"aten::linalg_solve_triangular", "lower", [](Draw& d) -> Arguments { return {Regular(d, {4, 4}), d.Moving({4, 2}), false}; }},
      {"aten::linalg_solve_triangular", "upper", [](Draw& d) -> Arguments { return {Regular(d, {2, 4, 4}), d.Moving({4, 2}), true}; }},
      {"aten::linalg_solve_triangular", "right", [](Draw& d) -> Arguments { return {Regular(d, {3, 3}), d.Moving({2, 4, 3}), true, false}; }},
      {"aten::linalg_solve_triangular", "unit", [](Draw& d) -> Arguments { return {Regular(d, {2, 3, 3}), d.Moving({2, 3, 1}), false, true, true}; }},
      {"aten::triangular_solve", "", [](Draw& d) -> Arguments { return {d.Moving({4, 2}), Regular(d, {4, 4})}; }},
      {"aten::triangular_solve", "transpose", [](Draw& d) -> Arguments { return {d.Moving({2, 4, 2}), Regular(d, {2, 4, 4}), false, true}; }},
      {"aten::triangular_solve", "unit", [](Draw& d) -> Arguments { return {d.Moving({3, 2}), Regular(d, {3, 3}), true, true, true}; }},
      {"aten::cholesky_inverse", "", [](Draw& d) -> Arguments { return {LowerTriangular(d, {4, 4})}; }},
      {"aten::cholesky_inverse", "upper", [](Draw& d) -> Arguments { return {Regular(d, {2, 3, 3}), true}; }},
      {"aten::cholesky_solve", "", [](Draw& d) -> Arguments { return {d.Moving({4, 2}), LowerTriangular(d, {4, 4})}; }},
      {"aten::cholesky_solve", "upper", [](Draw& d) -> Arguments { return {d.Moving({3, 4, 2}), Regular(d, {2, 1, 4, 4}), true}; }},
      {"aten::linalg_lu_solve", "", [](Draw& d) -> Arguments { const auto f = Factors(d, {4, 4}); return {f.first, f.second, d.Moving({4, 2})}; }},
      {"aten::linalg_lu_solve", "adjoint", [](Draw& d) -> Arguments { const auto f = Factors(d, {2, 3, 3}); return {f.first, f.second, d.Moving({2, 3, 2}), true, true}; }},
      {"aten::linalg_lu_solve", "right", [](Draw& d) -> Arguments { const auto f = Factors(d, {3, 3}); return {f.first, f.second, d.Moving({2, 3}), false}; }},
      {"aten::linalg_lu_solve", "right_adjoint", [](Draw& d) -> Arguments { const auto f = Factors(d, {3, 3}); return {f.first, f.second, d.Moving({4, 2, 3}), false, true}; }},
      {"aten::linalg_lstsq", "", [](Draw& d) -> Arguments { return {Regular(d, {3, 3}), d.Moving({3, 2})}; }},
      {"aten::linalg_lstsq", "tall", [](Draw& d) -> Arguments { return {Regular(d, {2, 5, 3}), d.Moving({2, 5, 2}), kNone, "gels"}; }},
      {"aten::linalg_lstsq", "wide", [](Draw& d) -> Arguments { return {Regular(d, {3, 5}), d.Moving({3, 2})}; }},
      // Determinants.
      {"aten::linalg_det", "", [](Draw& d) -> Arguments { return {d.Moving({4, 4})}; }},
      {"aten::linalg_det", "batch", [](Draw& d) -> Arguments { return {d.Moving({2, 3, 5, 5})}; }},
      {"aten::linalg_det", "one", [](Draw& d) -> Arguments { return {d.Moving({2, 1, 1})}; }},
      {"aten::linalg_det", "empty", [](Draw& d) -> Arguments { return {d.Moving({2, 0, 0})}; }},
      {"aten::linalg_det", "singular", [](Draw& d) -> Arguments {
         const auto low_rank = [&] { return d.Normal({4, 1}).matmul(d.Normal({1, 4})); };
         const at::Tensor value = low_rank() + low_rank();
         return {{value, low_rank() + low_rank() + low_rank()}}; }},
      {"aten::logdet", "", [](Draw& d) -> Arguments { return {Regular(d, {2, 4, 4})}; }},
      {"aten::linalg_slogdet", "", [](Draw& d) -> Arguments { return {Regular(d, {3, 4, 4})}; }},
      {"aten::linalg_matrix_exp", "", [](Draw& d) -> Arguments { return {d.Moving({3, 3})}; }},
      {"aten::linalg_matrix_exp", "batch", [](Draw& d) -> Arguments { return {d.Moving({2, 4, 4}, 0.5)}; }},
      // Factorizations.
      {"aten::cholesky", "", [](Draw& d) -> Arguments { return {Definite(d, {4, 4})}; }},
      {"aten::linalg_cholesky_ex", "", [](Draw& d) -> Arguments { return {Definite(d, {2, 3, 3})}; }},
      {"aten::linalg_cholesky_ex", "upper", [](Draw& d) -> Arguments { return {Definite(d, {2, 3, 3}), true}; }},
      {"aten::linalg_cholesky", "upper", [](Draw& d) -> Arguments { return {Definite(d, {4, 4}), true}; }},
      {"aten::linalg_lu_factor_ex", "", [](Draw& d) -> Arguments { return {Regular(d, {4, 4})}; }},
      {"aten::linalg_lu_factor_ex", "tall", [](Draw& d) -> Arguments { return {Regular(d, {2, 5, 3})}; }},
      {"aten::linalg_lu_factor_ex", "wide", [](Draw& d) -> Arguments { return {Regular(d, {2, 3, 5})}; }},
      {"aten::linalg_lu", "", [](Draw& d) -> Arguments { return {Regular(d, {2, 3, 3})}; }},
      {"aten::linalg_lu", "tall", [](Draw& d) -> Arguments { return {Regular(d, {4, 3})}; }},
      {"aten::lu_unpack", "", [](Draw& d) -> Arguments { const auto f = Factors(d, {2, 3, 3}); return {f.first, f.second}; }},
      {"aten::linalg_qr", "", [](Draw& d) -> Arguments { return {Regular(d, {4, 4})}; }},
      {"aten::linalg_qr", "tall", [](Draw& d) -> Arguments { return {Regular(d, {2, 5, 3})}; }},
      {"aten::linalg_qr", "wide", [](Draw& d) -> Arguments { return {Regular(d, {2, 3, 5}), "complete"}; }},
      {"aten::linalg_householder_product", "", [](Draw& d) -> Arguments { return {d.Moving({4, 3}), d.Moving({3})}; }},
      {"aten::linalg_householder_product", "batch", [](Draw& d) -> Arguments { return {d.Moving({2, 4, 4}), d.Moving({2, 2})}; }},
      {"aten::ormqr", "", [](Draw& d) -> Arguments { return {d.Moving({4, 3}), d.Moving({3}), d.Moving({4, 2})}; }},
      {"aten::ormqr", "right", [](Draw& d) -> Arguments { return {d.Moving({2, 4, 2}), d.Moving({2, 2}), d.Moving({2, 3, 4}), false}; }},
      {"aten::ormqr", "transpose", [](Draw& d) -> Arguments { return {d.Moving({4, 2}), d.Moving({2}), d.Moving({4, 3}), true, true}; }},
      {"aten::ormqr", "right_transpose", [](Draw& d) -> Arguments { return {d.Moving({4, 2}), d.Moving({2}), d.Moving({3, 4}), false, true}; }},
      // Eigenvalues and singular values.
      {"aten::_linalg_eigh", "", [](Draw& d) -> Arguments { return {Separate(d, {4, 4}, true)}; }},
      {"aten::_linalg_eigh", "batch", [](Draw& d) -> Arguments { return {Separate(d, {2, 3, 3}, true), "U"}; }},
      {"aten::symeig", "", [](Draw& d) -> Arguments { return {Separate(d, {3, 3}, true), true}; }},
      {"aten::_linalg_svd", "", [](Draw& d) -> Arguments { return {Separate(d, {4, 4}, false)}; }},
      {"aten::_linalg_svd", "tall", [](Draw& d) -> Arguments { return {Separate(d, {2, 5, 3}, false)}; }},
      {"aten::_linalg_svd", "wide", [](Draw& d) -> Arguments { return {Separate(d, {3, 5}, false)}; }},
      {"aten::linalg_polar", "", [](Draw& d) -> Arguments { return {Regular(d, {4, 4})}; }},
      {"aten::linalg_polar", "tall", [](Draw& d) -> Arguments { return {Regular(d, {2, 5, 3})}; }},
      {"aten::linalg_matrix_sqrth", "", [](Draw& d) -> Arguments { return {Definite(d, {4, 4})}; }},
      {"aten::linalg_matrix_sqrth", "batch", [](Draw& d) -> Arguments { return {Definite(d, {2, 3, 3})}; }},
      {"aten::linalg_matrix_sqrth", "empty", [](Draw& d) -> Arguments { return {d.Moving({2, 0, 0})}; }},
  };
  cases->insert(cases->end(), all.begin(), all.end());
}

// clang-format on

}  // namespace addend
