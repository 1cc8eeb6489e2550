// Entries of the database that Addend refuses, and those that break a law with good reason. Each refusal must be an
// error that names the operator; where an entry passes after all, its line has to go.
#ifndef ADDEND_TESTS_OPDB_REFUSED_H_
#define ADDEND_TESTS_OPDB_REFUSED_H_

#include <map>
#include <string>

#include "tests/opdb/database.h"

namespace addend {

inline const std::map<std::string, std::string>& Refused() {
  static const auto& refused = *[] {
    const char* writes = "writes running statistics and gives results beside them; models call batch_norm";
    const char* derivative = "the derivative of an operator, which no model calls";
    const char* compilers = "made by compilers, not by models: its indices may lie outside of the tensor";
    auto* all = new std::map<std::string, std::string>{
        {"_batch_norm_with_update", writes},
        {"_native_batch_norm_legit", writes},
        {"_softmax_backward_data", derivative},
        {"_unsafe_masked_index", compilers},
        {"_unsafe_masked_index_put_accumulate", compilers},
        {"linalg.eig",
         "no rule for general eigenvalue problems: eigenvectors are complex and defined up to their phase"},
        {"linalg.eigvals", "no rule for general eigenvalue problems"},
        {"linalg.matrix_sqrth", "no rule for the root of a matrix"},
        {"linalg.polar", "no rule for the polar decomposition"},
        {"max_pool2d_with_indices_backward", derivative},
        {"native_dropout_backward", derivative},
        {"nn.functional.scaled_dot_product_attention", "with dropout it draws random numbers; the other samples pass"},
        {"sparse.mm.reduce", "takes a sparse tensor; compositions are dense"},
        {"sparse.sampled_addmm", "takes a sparse tensor; compositions are dense"},
        {"to_sparse", "gives a sparse tensor; compositions are dense"},
    };
    if (TheDatabase().version() != "1.13") {
      // In the oldest version its operator says of no argument that it is written.
      (*all)["nn.functional.rrelu"] = "its operator writes the noise and gives a result beside it";
      const char* lowrank =
          "in some samples the parts of its decomposition are a matter of rounding, which is an error";
      (*all)["pca_lowrank"] = lowrank;
      (*all)["svd_lowrank"] = lowrank;
    }
    return all;
  }();
  return refused;
}

// Laws that do not hold of an entry, and why that is right.
struct Exception {
  std::string law;  // as the message begins
  std::string reason;
};
inline const std::map<std::string, Exception>& Exceptions() {
  static const auto& exceptions = *new std::map<std::string, Exception>{
      {"linalg.lu_factor",
       {"a reference where the operator itself fails",
        "it is linalg_lu_factor_ex and a check of the model's value; a singular baseline has an LU factorization too"}},
  };
  return exceptions;
}

}  // namespace addend

#endif  // ADDEND_TESTS_OPDB_REFUSED_H_
