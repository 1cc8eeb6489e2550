// The keys of a policy and their values as text, for parsers, help and messages. Made of policy_choices.txt.
#ifndef ADDEND_CORE_BASE_POLICY_KEYS_H_
#define ADDEND_CORE_BASE_POLICY_KEYS_H_

#include <string>
#include <vector>

namespace addend {

struct PolicyValue {
  std::string name;       // "hybrid_affine"
  std::string number;     // what the number is that it may take in brackets, "threshold"; empty: it takes none
  double default_number;  // where it may take one
  std::string says;       // what it does, in one sentence
};

struct PolicyKey {
  std::string name;                 // "missing_rule"
  std::string type;                 // "one of MissingRule", "some of Freeze", "whole number", "number"
  std::string default_value;        // as text
  std::string unset;                // the word for nothing chosen; empty where there is none
  bool by_operator;                 // whether KEY@SELECTOR may choose otherwise for some operators
  std::string says;                 // what it decides, in one sentence
  std::vector<PolicyValue> values;  // in the order of the enumerators; for "some of" in that of the bits
};

// In the order in which policies are described.
const std::vector<PolicyKey>& PolicyKeys();

}  // namespace addend

#endif  // ADDEND_CORE_BASE_POLICY_KEYS_H_
