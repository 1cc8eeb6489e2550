// The files that inputs, labels, parts and baselines are read from, whatever their format.
#ifndef ADDEND_TOOLS_ADDEND_INPUT_FILE_H_
#define ADDEND_TOOLS_ADDEND_INPUT_FILE_H_

#include <string>
#include <vector>

#include "core/program/tensor_io.h"
#include "tools/addend/commands.h"
#include "tools/addend/csv_file.h"
#include "tools/addend/image_file.h"

namespace addend::cli {

// How files are read that do not hold tensors.
struct FileFormat {
  Mapping mapping;     // of columns of .csv
  ImageOptions image;  // of PNG and JPEG
  c10::ScalarType dtype = c10::ScalarType::Float;
};

// Format of the inputs' files by --mapping, --channels, --mean, --std and --dtype.
FileFormat ReadFormat(const RunArguments& arguments);

// Decodes the content of a .npy or .safetensors file, PNG or JPEG; `path` stands in messages.
TensorFile DecodeInputFile(const std::string& bytes, const std::string& path, const FileFormat& format);
// Reads a .npy or .safetensors file, PNG or JPEG, by the content; or CSV, by the name. Throws as their readers do.
// others: as DecodeCsv() adds them.
TensorFile ReadInputFile(const std::string& path, const FileFormat& format, std::vector<OtherNumber>* others = nullptr);

}  // namespace addend::cli

#endif  // ADDEND_TOOLS_ADDEND_INPUT_FILE_H_
