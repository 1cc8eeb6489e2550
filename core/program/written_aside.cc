#include "core/program/written_aside.h"

#include <algorithm>
#include <string>

namespace addend {

bool MayBeWrittenAside(const c10::Argument& argument) {
  const std::string& name = argument.name();
  return name == "running_mean" || name == "running_var" || name == "noise";
}

bool IsWrittenAside(const c10::FunctionSchema& schema, const c10::Argument& argument) {
  if (!MayBeWrittenAside(argument)) return false;
  const c10::AliasInfo* own = argument.alias_info();
  return !schema.returns().empty() &&
         std::none_of(schema.returns().begin(), schema.returns().end(), [&](const c10::Argument& result) {
           return own != nullptr && result.alias_info() != nullptr &&
                  result.alias_info()->beforeSets() == own->beforeSets();
         });
}

}  // namespace addend
