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

// Meaning of a column's texts to a model.
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

// A field of which the table holds another number, beyond the rounding that each fraction has: of a whole number such
// as an identifier that is not kept, or 0 of a number that is so small.
struct OtherNumber {
  int64_t row = 0;  // from 0
  std::string column;
  std::string said;  // the sentence for this row
};
// A sentence for each column, about its first row. path: of a table that is not the input; else empty.
std::vector<std::string> NotesOn(const std::vector<OtherNumber>& others, const std::string& path);

// Reads the content of a CSV file (RFC 4180: quoted fields, LF or CRLF; UTF-8 with or without a byte order mark), whose
// first line names the columns:
//   "input"    [rows, width] of `dtype`: each column as a number, or as one 0 or 1 for each text of a one-hot column
//   "columns"  [1, width] int64, only where a column is one-hot: which column each number belongs to
// and as metadata "kind" ("table"), "columns" (names of the columns) and "names" (of the numbers: "colour=red" for a
// one-hot column), JSON lists. Throws InvalidArgument that names row (counted from 0), line and column for whatever is
// no finite number of `dtype` (float32 or float64) and has no mapping: an empty field too, and for a mapping of a
// column that the file does not have. others: fields of which `dtype` makes another number are added, by row.
TensorFile DecodeCsv(const std::string& bytes, const std::string& path, const Mapping& mapping, c10::ScalarType dtype,
                     std::vector<OtherNumber>* others = nullptr);

// Rows of a CSV file that is read by ranges.
struct CsvRange {
  int64_t first = 0;                // the number of the first row, from 0
  int64_t count = 0;                // of rows
  int64_t line = 2;                 // of the file, on which they begin
  std::vector<std::string> groups;  // columns whose texts are asked for beside the numbers
};
struct CsvRows {
  TensorFile table;                                      // as DecodeCsv() gives it; rows that are refused hold zeros
  std::vector<std::pair<int64_t, std::string>> refused;  // rows whose fields are no input, and why
  std::vector<OtherNumber> others;                       // of rows that are not refused
  std::vector<std::vector<std::string>> groups;          // by column, then by row; empty where it is refused
};
// Decodes `rows`, the bytes of some whole lines, of a file whose first line is `header`. What DecodeCsv() throws for a
// field, refuses its row here, as does a text of `groups` that is not UTF-8; what it throws for the first line and for
// quotation marks is thrown. Throws InvalidArgument for a column of `groups` that there is not, and where these are not
// `count` lines.
CsvRows DecodeCsvRows(const std::string& header, const std::string& rows, const CsvRange& range,
                      const std::string& path, const Mapping& mapping, c10::ScalarType dtype);

// Place in a CSV file at which a row begins.
struct CsvMark {
  int64_t row = 0;  // from 0; of the end of the file: how many there are
  uint64_t offset = 0;
  int64_t line = 1;
};
// Finds where lines end in a file that comes in pieces: at line feeds outside of quotation marks.
class CsvLines {
 public:
  // The file goes on with these bytes. `take` is called with the offset behind each line, where the next one begins,
  // and with the number of that next line, from 1.
  template <typename Take>
  void Add(const char* data, size_t size, const Take& take) {
    for (size_t k = 0; k < size; ++k) {
      ++offset_;
      if (data[k] == '"') quoted_ = !quoted_;
      if (data[k] != '\n') continue;
      ++line_;
      if (quoted_) continue;
      begin_ = offset_;
      take(begin_, line_);
    }
  }
  // The file ends here: a last line may lack its line feed.
  template <typename Take>
  void End(const Take& take) const {
    if (begin_ < offset_) take(offset_, line_ + 1);
  }

 private:
  uint64_t offset_ = 0;
  uint64_t begin_ = 0;  // of the line
  int64_t line_ = 1;
  bool quoted_ = false;
};

}  // namespace addend::cli

#endif  // ADDEND_TOOLS_ADDEND_CSV_FILE_H_
