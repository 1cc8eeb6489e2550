#include "tools/addend/csv_file.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <csv.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/ascii.h"
#include "absl/strings/charconv.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "core/base/error.h"
#include "core/base/read_json.h"
#include "core/base/tensor_text.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/explain/note_kinds.h"

namespace addend::cli {
namespace {

Error OutOfMemory(const std::string& what) { return Error(absl::StatusCode::kResourceExhausted, what); }

constexpr char kMappingForms[] =
    "{TEXT: NUMBER, ...}, a list of texts (a column of 0 and 1 for each), or null (no input of the model)";

// A line of the file, with the number of the line that it begins on.
struct Record {
  std::vector<std::string> fields;
  int64_t line = 0;
};

// Collects what libcsv finds. It is called from C: nothing may be thrown through it.
struct Collector {
  std::vector<Record> records;
  Record current;
  int64_t line = 1;
  bool after_cr = false;
  bool out_of_memory = false;

  static void OnField(void* text, size_t size, void* self) { static_cast<Collector*>(self)->Field(text, size); }
  static void OnEnd(int end, void* self) { static_cast<Collector*>(self)->End(end); }

 private:
  void Field(const void* text, size_t size) {
    after_cr = false;
    try {
      const auto* bytes = static_cast<const char*>(text);
      if (current.fields.empty()) current.line = line;
      current.fields.emplace_back(bytes, size);
      line += std::count(bytes, bytes + size, '\n');
    } catch (const std::bad_alloc&) {
      out_of_memory = true;
    }
  }

  // `end`: the character that ended the line, -1 at the end of the file. Every carriage return and line feed outside of
  // quotes ends one, so that a line feed behind a carriage return ends nothing more.
  void End(int end) {
    const bool second = end == CSV_LF && after_cr;
    after_cr = end == CSV_CR;
    if (second) return;
    try {
      if (current.fields.empty()) current.line = line;
      if (end != -1 || !current.fields.empty()) records.push_back(std::move(current));
    } catch (const std::bad_alloc&) {
      out_of_memory = true;
    }
    current = Record();
    ++line;
  }
};

int NoSpace(unsigned char) { return 0; }

// Frees what libcsv keeps.
struct Parser {
  csv_parser state = {};
  Parser() {
    // Fields are exactly what is between the commas, spaces too, as RFC 4180 has it.
    if (csv_init(&state, CSV_STRICT | CSV_STRICT_FINI | CSV_REPALL_NL) != 0) {
      throw OutOfMemory("the reader of CSV cannot be started");
    }
    csv_set_space_func(&state, NoSpace);
  }
  ~Parser() { csv_free(&state); }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;
};

// `line`: of the file, on which the bytes begin.
std::vector<Record> ReadRecords(const std::string& bytes, const std::string& path, int64_t line = 1) {
  constexpr char kByteOrderMark[] = "\xef\xbb\xbf";
  const size_t begin = absl::StartsWith(bytes, kByteOrderMark) ? 3 : 0;
  Parser parser;
  Collector found;
  found.line = line;
  const size_t size = bytes.size() - begin;
  const bool whole =
      csv_parse(&parser.state, bytes.data() + begin, size, Collector::OnField, Collector::OnEnd, &found) == size &&
      csv_fini(&parser.state, Collector::OnField, Collector::OnEnd, &found) == 0;
  if (found.out_of_memory || (!whole && csv_error(&parser.state) != CSV_EPARSE)) {
    throw OutOfMemory(absl::StrCat(path, " takes more memory than there is"));
  }
  if (!whole) {
    const int64_t wrong = found.current.fields.empty() ? found.line : found.current.line;
    throw InvalidArgument(
        absl::StrCat(path, ": line ", wrong,
                     " has a quotation mark in the wrong place; a field with quotation marks, commas "
                     "or line breaks stands between quotation marks, and each one inside is doubled"));
  }
  while (!found.records.empty() && found.records.back().fields.empty()) found.records.pop_back();
  return std::move(found.records);
}

void CheckUtf8(const std::string& text, const std::string& where) {
  if (!IsUtf8(text)) throw InvalidArgument(absl::StrCat(where, " is not UTF-8; save the file as UTF-8"));
}

// Describes the place of a row, for messages.
std::string PlaceOf(const std::string& path, int64_t row, const Record& record) {
  return absl::StrCat(path, ": row ", row, " (counted from 0; line ", record.line, ")");
}

// A decimal number; infinite where it is too large.
bool ParseNumber(const std::string& text, double* number) {
  absl::string_view digits = absl::StripAsciiWhitespace(text);
  // Which from_chars would take for a hexadecimal one.
  if (digits.find_first_of("xX") != absl::string_view::npos) return false;
  if (absl::StartsWith(digits, "+") && !absl::StartsWith(digits, "+-")) digits.remove_prefix(1);
  const auto parsed = absl::from_chars(digits.data(), digits.data() + digits.size(), *number);
  if (parsed.ec == std::errc::result_out_of_range && std::abs(*number) > 1) {
    *number = std::copysign(std::numeric_limits<double>::infinity(), *number);
  }
  return parsed.ptr == digits.data() + digits.size() && parsed.ec != std::errc::invalid_argument;
}

// The names of the columns.
std::vector<std::string> ReadHeader(const std::vector<Record>& records, const std::string& path,
                                    const Mapping& mapping) {
  if (records.empty()) throw InvalidArgument(absl::StrCat(path, " is empty; its first line has to name the columns"));
  const std::vector<std::string>& names = records[0].fields;
  absl::flat_hash_set<std::string> known;
  for (size_t column = 0; column < names.size(); ++column) {
    CheckUtf8(names[column], absl::StrCat(path, ": the name of column ", column + 1));
    if (names[column].empty()) {
      throw InvalidArgument(absl::StrCat(path, ": column ", column + 1, " has no name in the first line"));
    }
    if (!known.insert(names[column]).second) {
      throw InvalidArgument(absl::StrCat(path, ": two columns are called \"", Quoted(names[column]), "\""));
    }
  }
  if (names.size() == 1 && (absl::StrContains(names[0], ';') || absl::StrContains(names[0], '\t'))) {
    throw InvalidArgument(
        absl::StrCat(path, " has one column, \"", Quoted(names[0]), "\"; columns have to be separated by commas"));
  }
  // Numbers in place of names mean that these were forgotten, unless they count the columns; a row would be lost.
  bool numbers = true;
  bool counted = true;
  for (size_t column = 0; column < names.size(); ++column) {
    double number = 0;
    numbers = numbers && ParseNumber(names[column], &number);
    counted = counted && names[column] == absl::StrCat(column);
  }
  if (numbers && !counted) {
    throw InvalidArgument(absl::StrCat(path, ": the first line has to name the columns, and has only numbers"));
  }
  for (const auto& [name, column] : mapping) {
    if (known.count(name) == 0) {
      throw InvalidArgument(absl::StrCat("--mapping names a column \"", Quoted(name), "\" that ", path,
                                         " does not have (it has ", Listed(names), ")"));
    }
  }
  return names;
}

// A field as messages name it: only what is wrong needs the name.
using Where = absl::FunctionRef<std::string()>;

double ReadNumber(const std::string& text, Where where) {
  double number = 0;
  if (absl::StripAsciiWhitespace(text).empty()) {
    throw InvalidArgument(
        absl::StrCat(where(), " is empty; leave the row out, or fill in what the model was trained with there"));
  }
  if (!ParseNumber(text, &number)) {
    throw InvalidArgument(absl::StrCat(where(), " is \"", Quoted(text),
                                       "\", which is no number; --mapping names a file that says what its texts mean"));
  }
  return number;
}

// The number that a tensor of this type holds of another.
double HeldBy(c10::ScalarType dtype, double number) {
  return dtype == at::kFloat ? static_cast<double>(static_cast<float>(number)) : number;
}

void RequireFinite(double number, c10::ScalarType dtype, const std::string& text, Where where) {
  if (std::isfinite(HeldBy(dtype, number))) return;
  throw InvalidArgument(absl::StrCat(where(), " is \"", Quoted(text), "\", which is no finite number",
                                     std::isfinite(number) ? " in single precision; --dtype float64 holds it" : ""));
}

// Whether `held` is another number than a text says, beyond the rounding that each fraction has. Texts are compared:
// a double does not hold every whole number either.
bool IsAnother(absl::string_view text, double held) {
  if (held == 0) return text.substr(0, text.find_first_of("eE")).find_first_of("123456789") != absl::string_view::npos;
  const bool negative = absl::ConsumePrefix(&text, "-");
  absl::ConsumePrefix(&text, "+");
  while (absl::ConsumePrefix(&text, "0")) {
  }
  const size_t point = text.find('.');  // "16777217.0" is a whole number too
  if (point != absl::string_view::npos && text.find_first_not_of('0', point + 1) == absl::string_view::npos) {
    text = text.substr(0, point);
  }
  if (text.empty() || !std::all_of(text.begin(), text.end(), absl::ascii_isdigit)) return false;
  return absl::StrFormat("%.0f", held) != absl::StrCat(negative ? "-" : "", text);
}

// Which of its texts a mapped column holds.
size_t ReadCategory(const std::string& text, const ColumnMapping& mapping, Where where) {
  for (size_t k = 0; k < mapping.values.size(); ++k) {
    if (mapping.values[k].first == text) return k;
  }
  std::vector<std::string> known;
  for (const auto& [own, value] : mapping.values) known.push_back(absl::StrCat("\"", Quoted(own), "\""));
  throw InvalidArgument(absl::StrCat(where(), " is ", text.empty() ? "empty" : absl::StrCat("\"", Quoted(text), "\""),
                                     ", which --mapping does not name (it names ", Listed(known), ")"));
}

std::string DumpList(const std::vector<std::string>& list) { return nlohmann::json(list).dump(); }

// Columns of a table, made from the fields of a row by the first line and a mapping.
class Columns {
 public:
  Columns(const std::vector<std::string>& header, const std::string& path, const Mapping& mapping)
      : header_(header), path_(path) {
    for (size_t field = 0; field < header.size(); ++field) {
      const auto mapped = mapping.find(header[field]);
      const ColumnMapping* own = mapped == mapping.end() ? nullptr : &mapped->second;
      if (own != nullptr && own->skipped) continue;
      const bool one_hot = own != nullptr && own->one_hot;
      for (size_t k = 0; k < (one_hot ? own->values.size() : 1); ++k) {
        names_.push_back(one_hot ? absl::StrCat(header[field], "=", own->values[k].first) : header[field]);
        labels_.push_back(static_cast<int64_t>(columns_.size()));
      }
      columns_.push_back({field, own});
      own_names_.push_back(header[field]);
    }
    if (columns_.empty()) throw InvalidArgument(absl::StrCat(path, " has no column that is an input of the model"));
  }

  int64_t width() const { return static_cast<int64_t>(names_.size()); }

  // The numbers of a row: `width` of them. Throws InvalidArgument for a field that is none.
  void Read(const Record& record, int64_t row, c10::ScalarType dtype, double* to,
            std::vector<OtherNumber>* others) const {
    if (record.fields.size() != header_.size()) {
      throw InvalidArgument(absl::StrCat(PlaceOf(path_, row, record), " has ", record.fields.size(),
                                         " fields, and the first line names ", header_.size(), " columns"));
    }
    for (const Column& column : columns_) {
      const std::string& text = record.fields[column.field];
      const auto where = [&] {
        return absl::StrCat(PlaceOf(path_, row, record), ", column \"", Quoted(header_[column.field]), "\"");
      };
      const size_t category = column.mapping == nullptr ? 0 : ReadCategory(text, *column.mapping, where);
      if (column.mapping == nullptr || !column.mapping->one_hot) {
        *to = column.mapping == nullptr ? ReadNumber(text, where) : column.mapping->values[category].second;
        RequireFinite(*to, dtype, text, where);
        if (others != nullptr) Compare(column, row, text, *to, dtype, others);
        ++to;
        continue;
      }
      for (size_t k = 0; k < column.mapping->values.size(); ++k) *to++ = k == category ? 1 : 0;
    }
  }

  // A table of these numbers.
  TensorFile File(const at::Tensor& input) const {
    TensorFile file;
    file.tensors.emplace_back("input", input);
    if (columns_.size() != names_.size()) {
      file.tensors.emplace_back("columns", at::tensor(labels_, at::kLong).unsqueeze(0));
    }
    file.metadata = {{"kind", "table"}, {"columns", DumpList(own_names_)}, {"names", DumpList(names_)}};
    return file;
  }

 private:
  struct Column {
    size_t field;
    const ColumnMapping* mapping;  // null: numbers
  };

  // Adds a number to those of which `dtype` makes another one, if it does.
  void Compare(const Column& column, int64_t row, const std::string& text, double number, c10::ScalarType dtype,
               std::vector<OtherNumber>* others) const {
    const double held = HeldBy(dtype, number);
    // Every whole number below is held as it is, so that most fields need no comparison of texts.
    if (held != 0 && std::abs(held) < 0x1p24) return;
    const std::string mapped = column.mapping == nullptr ? "" : nlohmann::json(number).dump();
    const absl::string_view own =
        column.mapping == nullptr ? absl::StripAsciiWhitespace(text) : absl::StripSuffix(mapped, ".0");
    if (!IsAnother(own, held)) return;
    const WordsOfNote& words = WordsOf(NoteKind::kAnotherNumber);
    const std::string& name = header_[column.field];
    others->push_back({row, name,
                       absl::StrCat(words.begins, Quoted(name), "\" is ", own, words.holds, DtypeWord(dtype), " makes ",
                                    held == 0 ? "0" : absl::StrFormat("%.0f", held), ": that is what is explained")});
  }

  const std::vector<std::string>& header_;
  const std::string& path_;
  std::vector<Column> columns_;
  std::vector<std::string> names_;
  std::vector<std::string> own_names_;
  std::vector<int64_t> labels_;
};

}  // namespace

Mapping ParseMapping(const std::string& json, const std::string& path) {
  const auto parsed = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  const std::string what = absl::StrCat("--mapping ", path, ": ");
  if (!parsed.is_object()) throw InvalidArgument(what + "it is not a JSON object with the names of columns as keys");
  // A text that is there twice is an error: libraries would take the last one.
  if (const auto twice = KeyTwice(json.data(), json.data() + json.size())) {
    throw InvalidArgument(absl::StrCat(what, "\"", Quoted(*twice), "\" is there twice"));
  }
  Mapping mapping;
  for (const auto& [name, texts] : parsed.items()) {
    const std::string column = absl::StrCat(what, "column \"", Quoted(name), "\"");
    ColumnMapping& own = mapping[name];
    own.skipped = texts.is_null();
    own.one_hot = texts.is_array();
    if (!own.skipped && (!texts.is_structured() || texts.empty())) {
      throw InvalidArgument(absl::StrCat(column, " needs ", kMappingForms));
    }
    if (own.one_hot) {
      absl::flat_hash_set<std::string> seen;
      for (const auto& text : texts) {
        if (!text.is_string()) throw InvalidArgument(absl::StrCat(column, " has a list with something but texts"));
        if (!seen.insert(text.template get<std::string>()).second) {
          throw InvalidArgument(absl::StrCat(column, " has \"", Quoted(text.get<std::string>()), "\" twice"));
        }
        own.values.emplace_back(text.get<std::string>(), 1);
      }
    } else if (!own.skipped) {
      for (const auto& [text, number] : texts.items()) {
        if (!number.is_number()) {
          throw InvalidArgument(absl::StrCat(column, " has something but a number for \"", Quoted(text), "\""));
        }
        own.values.emplace_back(text, number.template get<double>());
      }
    }
  }
  return mapping;
}

std::vector<std::string> NotesOn(const std::vector<OtherNumber>& others, const std::string& path) {
  absl::flat_hash_map<std::string, size_t> more;  // by column, behind its first
  std::vector<const OtherNumber*> firsts;
  for (const OtherNumber& own : others) {
    const auto [count, is_first] = more.try_emplace(own.column, 0);
    if (is_first) {
      firsts.push_back(&own);
    } else {
      ++count->second;
    }
  }
  std::vector<std::string> notes;
  for (const OtherNumber* first : firsts) {
    const size_t further = more.at(first->column);
    notes.push_back(absl::StrCat(first->said, " (in row ", first->row, path.empty() ? "" : " of ", path,
                                 ", counted from 0", further == 0 ? "" : absl::StrCat(" and ", further, " more"), ")"));
  }
  return notes;
}

bool IsCsvPath(const std::string& path) { return absl::EndsWithIgnoreCase(path, ".csv"); }

TensorFile DecodeCsv(const std::string& bytes, const std::string& path, const Mapping& mapping, c10::ScalarType dtype,
                     std::vector<OtherNumber>* others) {
  const std::vector<Record> records = ReadRecords(bytes, path);
  const std::vector<std::string> header = ReadHeader(records, path, mapping);
  if (records.size() == 1) throw InvalidArgument(absl::StrCat(path, " has names of columns, but no rows"));
  const Columns columns(header, path, mapping);
  const auto rows = static_cast<int64_t>(records.size()) - 1;
  at::Tensor input = at::empty({rows, columns.width()}, at::kDouble);
  for (int64_t row = 0; row < rows; ++row) {
    columns.Read(records[row + 1], row, dtype, input.data_ptr<double>() + row * columns.width(), others);
  }
  return columns.File(input.to(dtype));
}

CsvRows DecodeCsvRows(const std::string& header, const std::string& rows, const CsvRange& range,
                      const std::string& path, const Mapping& mapping, c10::ScalarType dtype) {
  const std::vector<std::string> names = ReadHeader(ReadRecords(header, path), path, mapping);
  const Columns columns(names, path, mapping);
  std::vector<Record> records = ReadRecords(rows, path, range.line);
  // Empty lines at the end are none of a whole file.
  if (static_cast<int64_t>(records.size()) < range.count) records.resize(static_cast<size_t>(range.count));
  const int64_t count = range.count;
  if (static_cast<int64_t>(records.size()) != count) {
    throw InvalidArgument(absl::StrCat(path, ": rows ", range.first, " to ", range.first + count - 1, " are ",
                                       records.size(), " lines; lines have to end with LF or CR LF"));
  }
  CsvRows found;
  std::vector<size_t> fields;  // of the groups
  for (const std::string& group : range.groups) {
    const auto place = std::find(names.begin(), names.end(), group);
    if (place == names.end()) {
      throw InvalidArgument(absl::StrCat(path, " has no column \"", Quoted(group), "\"; it has ", Listed(names)));
    }
    fields.push_back(static_cast<size_t>(place - names.begin()));
    found.groups.emplace_back(static_cast<size_t>(count));
  }
  at::Tensor input = at::zeros({count, columns.width()}, at::kDouble);
  for (int64_t row = 0; row < count; ++row) {
    double* to = input.data_ptr<double>() + row * columns.width();
    const Record& record = records[static_cast<size_t>(row)];
    const size_t others = found.others.size();
    try {
      columns.Read(record, range.first + row, dtype, to, &found.others);
      for (size_t g = 0; g < fields.size(); ++g) {
        const std::string& text = record.fields[fields[g]];
        CheckUtf8(text, absl::StrCat(PlaceOf(path, range.first + row, record), ", column \"", range.groups[g], "\""));
        found.groups[g][static_cast<size_t>(row)] = text;
      }
    } catch (const Error& error) {
      std::fill(to, to + columns.width(), 0.0);
      found.others.resize(others);
      found.refused.emplace_back(range.first + row, error.what());
    }
  }
  found.table = columns.File(input.to(dtype));
  return found;
}

}  // namespace addend::cli
