// Tables as people keep them: CSV with a header.
#ifndef ADDEND_TOOLS_ADDEND_CSV_FILE_H_
#define ADDEND_TOOLS_ADDEND_CSV_FILE_H_

#include <c10/core/ScalarType.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/program/tensor_io.h"

namespace addend::cli {

// What the texts of a column mean to a model.
struct ColumnMapping {
  bool skipped = false;                                // the column is no input of the model
  bool one_hot = false;                                // a 0 or 1 for each text, in this order; else the text's number
  std::vector<std::pair<std::string, double>> values;  // the texts that the column may hold
};
using Mapping = std::map<std::string, ColumnMapping>;  // by the name of the column

// Reads a mapping: a JSON object with, for each column that it is about, {TEXT: NUMBER, ...}, or a list of texts for
// one-hot columns, or null for a column that is no input. `path` stands in messages. Throws InvalidArgument.
Mapping ParseMapping(const std::string& json, const std::string& path);

// Whether a path is that of a CSV file: by its name, because the content of CSV has no mark.
bool IsCsvPath(const std::string& path);

// Reads the content of a CSV file (RFC 4180: quoted fields, LF or CRLF; UTF-8 with or without a byte order mark), whose
// first line names the columns:
//   "input"    [rows, width] of `dtype`: each column as a number, or as one 0 or 1 for each text of a one-hot column
//   "columns"  [1, width] int64, only where a column is one-hot: which column each number belongs to
// and as metadata "kind" ("table"), "columns" (names of the columns) and "names" (of the numbers: "colour=red" for a
// one-hot column), JSON lists. Throws InvalidArgument that names row (counted from 0), line and column for whatever is
// no finite number of `dtype` (float32 or float64) and has no mapping: an empty field too, and for a mapping of a
// column that the file does not have.
TensorFile DecodeCsv(const std::string& bytes, const std::string& path, const Mapping& mapping, c10::ScalarType dtype);

}  // namespace addend::cli

#endif  // ADDEND_TOOLS_ADDEND_CSV_FILE_H_
