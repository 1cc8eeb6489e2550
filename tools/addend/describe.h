// Description of a run for documents: its files with their hashes, and the names that these files have for components
// and classes.
#ifndef ADDEND_TOOLS_ADDEND_DESCRIBE_H_
#define ADDEND_TOOLS_ADDEND_DESCRIBE_H_

#include <map>
#include <string>

#include "core/document/explanation.h"
#include "tools/addend/inputs.h"

namespace addend::cli {

// This program and its LibTorch.
Writer ThisProgram();

// A run without its components; its report is `report`.
ExplainedRun DescribeFiles(const LoadedRun& run, const Report& report);
// A run with its components and without a report, which is not known yet. Names come from --names and --classes, else
// from the metadata of the input's file, else they are positions. Throws InvalidArgument where the number of --names is
// not that of the components.
ExplainedRun DescribeRun(const LoadedRun& run, const std::string& names, const std::string& classes);

// Metadata for tensors that are written beside an explanation, whose JSON is `record`: where they come from, and the
// names of the components.
std::map<std::string, std::string> MetadataOf(const Json& record);

}  // namespace addend::cli

#endif  // ADDEND_TOOLS_ADDEND_DESCRIBE_H_
