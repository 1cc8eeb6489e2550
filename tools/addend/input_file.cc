#include "tools/addend/input_file.h"

#include "absl/strings/str_cat.h"
#include "core/base/error.h"

namespace addend::cli {

FileFormat ReadFormat(const RunArguments& arguments) {
  FileFormat format;
  if (!arguments.mapping.empty()) {
    format.mapping = ParseMapping(ReadFileWhole(arguments.mapping), arguments.mapping);
  }
  for (const double divisor : arguments.std) {
    if (!(divisor > 0)) throw InvalidArgument(absl::StrCat("--std has ", divisor, ", and is divided by"));
  }
  format.image = {arguments.channels, arguments.mean, arguments.std};
  if (arguments.dtype == "float64") format.dtype = at::kDouble;
  return format;
}

TensorFile DecodeInputFile(const std::string& bytes, const std::string& path, const FileFormat& format) {
  return IsImage(bytes) ? DecodeImage(bytes, path, format.image, format.dtype) : DecodeTensorFile(bytes, path);
}

TensorFile ReadInputFile(const std::string& path, const FileFormat& format, std::vector<OtherNumber>* others) {
  if (IsCsvPath(path)) return DecodeCsv(ReadFileWhole(path), path, format.mapping, format.dtype, others);
  return DecodeInputFile(ReadFileWhole(path), path, format);
}

}  // namespace addend::cli
