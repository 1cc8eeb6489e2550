// Entries of the database that Addend refuses, and why. Each run of them must raise an error that names the operator;
// where such an entry passes, its line has to go.
#ifndef ADDEND_TESTS_OPDB_REFUSED_H_
#define ADDEND_TESTS_OPDB_REFUSED_H_

#include <map>
#include <string>

namespace addend {

inline const std::map<std::string, std::string>& Refused() {
  static const auto& refused = *new std::map<std::string, std::string>{
      {"to_sparse", "gives a sparse tensor; compositions are dense"},
  };
  return refused;
}

}  // namespace addend

#endif  // ADDEND_TESTS_OPDB_REFUSED_H_
