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
    auto* all = new std::map<std::string, std::string>{
        {"linalg.eig",
         "no rule for general eigenvalue problems: eigenvectors are complex and defined up to their phase"},
        {"linalg.eigvals", "no rule for general eigenvalue problems"},
        {"nn.functional.scaled_dot_product_attention", "with dropout it draws random numbers; the other samples pass"},
        {"sparse.mm.reduce", "takes a sparse tensor; compositions are dense"},
        {"sparse.sampled_addmm", "takes a sparse tensor; compositions are dense"},
        {"to_sparse", "gives a sparse tensor; compositions are dense"},
    };
    if (TheDatabase().version() != "1.13") {
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
