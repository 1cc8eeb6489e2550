// Laws that every operator has to obey, judged by what the operator itself gives, and by nothing of ours.
#ifndef ADDEND_TESTS_OPDB_LAWS_H_
#define ADDEND_TESTS_OPDB_LAWS_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/policy.h"
#include "tests/opdb/database.h"

namespace addend {

// Reference of the decomposed inputs.
enum class Style { kZero, kSmall, kLarge };

struct Outcome {
  int64_t runs = 0;
  int64_t stand_ins = 0;             // runs with a stand-in reference
  std::set<std::string> kinds;       // of the operators that the entry is made of
  std::set<std::string> operators;   // "aten::add.Tensor"
  double worst_leftover = 0;         // relative; runs with stand-ins excepted
  double worst_recovery = 0;         // relative to what is summed
  std::set<std::string> linear;      // "linear" where the operator itself is, and our parts are its parts
  std::vector<std::string> refused;  // errors that Addend raised, each with its run
  std::vector<std::string> wrong;    // laws that do not hold, each with its run
};

// All laws on one sample: compositions on every floating-point input and on the first only, three styles.
void Judge(const Sample& sample, bool random, Preset preset, Outcome& outcome);

// Operators of LibTorch that the rules of a sample ask for when they send rows through, of 2 and of 64 components; 0
// and 0 where the sample cannot be decomposed. What an operator of LibTorch calls in turn does not count.
std::pair<int64_t, int64_t> CountCalls(const Sample& sample, Preset preset);

}  // namespace addend

#endif  // ADDEND_TESTS_OPDB_LAWS_H_
