#include "tools/addend/job_rows.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/audit/tensors.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/file_error.h"
#include "core/base/tensor_text.h"
#include "core/jobs/job_runner.h"
#include "core/program/sha256.h"
#include "tools/addend/files.h"
#include "tools/addend/inputs.h"

namespace addend::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kTable[] = "csv";
constexpr char kFolder[] = "folder";

// How files are read, as a plan holds it.
Json FormatJson(const FileFormat& format) {
  Json mapping = Json::object();
  for (const auto& [name, column] : format.mapping) {
    Json own = nullptr;
    if (column.one_hot) {
      own = Json::array();
      for (const auto& [text, number] : column.values) own.push_back(text);
    } else if (!column.skipped) {
      own = Json::object();
      for (const auto& [text, number] : column.values) own[text] = number;
    }
    mapping[name] = std::move(own);
  }
  return {{"channels", format.image.channels},
          {"dtype", DtypeWord(format.dtype)},
          {"mapping", std::move(mapping)},
          {"mean", format.image.mean},
          {"std", format.image.std}};
}

FileFormat FormatOf(const Json& json, const std::string& plan_path) {
  FileFormat format;
  format.mapping = ParseMapping(json.at("mapping").dump(), plan_path);
  format.image = {json.at("channels").get<std::string>(), json.at("mean").get<std::vector<double>>(),
                  json.at("std").get<std::vector<double>>()};
  format.dtype = DtypeOfWord(json.at("dtype").get<std::string>());
  return format;
}

// ----------------------------------------------------------------------------------------------------------- CSV

class TableRows : public RowSource {
 public:
  // `marks`: of rows where ranges begin, from the first row to the end of the file.
  TableRows(std::string path, FileFormat format, std::vector<std::string> groups, std::vector<CsvMark> marks)
      : path_(std::move(path)), format_(std::move(format)), groups_(std::move(groups)), marks_(std::move(marks)) {
    header_ = ReadPart(0, marks_.front().offset);
  }

  int64_t rows() const override { return marks_.back().row; }

  DataRows Read(int64_t first, int64_t count) const override {
    CsvRange range;
    const std::string bytes = Bytes(first, count, &range);
    CsvRows decoded = DecodeCsvRows(header_, bytes, range, path_, format_.mapping, format_.dtype);
    DataRows rows;
    rows.first = first;
    rows.inputs.push_back(*decoded.table.Find("input"));
    for (auto& [row, reason] : decoded.refused) rows.refused.push_back({row, std::move(reason)});
    for (OtherNumber& own : decoded.others) rows.notes.push_back({own.row, std::move(own.said)});
    rows.groups = std::move(decoded.groups);
    rows.sha256 = DigestOf(bytes);
    return rows;
  }

  Json Describe(const std::string& plan_path, int64_t shard_rows) const override {
    Json marks = Json::array();
    for (const CsvMark& mark : marks_) {
      if (mark.row % shard_rows == 0 || mark.row == rows()) marks.push_back({mark.row, mark.offset, mark.line});
    }
    return {{"files", {{{"path", ToPlan(plan_path, path_)}}}},
            {"format", FormatJson(format_)},
            {"groups", groups_},
            {"kind", kTable},
            {"marks", std::move(marks)}};
  }

  // The first row as a file of its own.
  TensorFile First() const {
    CsvRange range;
    const std::string bytes = Bytes(0, 1, &range);
    range.groups.clear();
    return DecodeCsvRows(header_, bytes, range, path_, format_.mapping, format_.dtype).table;
  }

 private:
  std::string DigestOf(const std::string& bytes) const {
    Sha256Digest digest;
    digest.Add(header_.data(), header_.size());
    digest.Add(bytes.data(), bytes.size());
    return digest.Hex();
  }

  std::string ReadPart(uint64_t begin, uint64_t end) const {
    const Descriptor file(OpenToRead(path_));
    return ReadAt(file.get(), path_, begin, end - begin);
  }

  // The lines of some rows.
  std::string Bytes(int64_t first, int64_t count, CsvRange* range) const {
    const auto before = [](int64_t row, const CsvMark& mark) { return row < mark.row; };
    const CsvMark& begin = *(std::upper_bound(marks_.begin(), marks_.end(), first, before) - 1);
    const auto end = std::lower_bound(marks_.begin(), marks_.end(), first + count,
                                      [](const CsvMark& mark, int64_t row) { return mark.row < row; });
    std::string bytes = ReadPart(begin.offset, end->offset);
    range->first = first;
    range->count = count;
    range->line = begin.line;
    range->groups = groups_;
    // From a mark on to the rows that are asked for.
    int64_t row = begin.row;
    uint64_t from = 0;
    uint64_t to = first + count == begin.row ? 0 : bytes.size();
    CsvLines lines;
    const auto take = [&](uint64_t behind, int64_t line) {
      ++row;
      if (row == first) {
        from = behind;
        range->line = begin.line + line - 1;
      }
      if (row == first + count) to = std::min(to, behind);
    };
    if (begin.row != first || end->row != first + count) {
      lines.Add(bytes.data(), bytes.size(), take);
      lines.End(take);
    }
    return bytes.substr(from, to - from);
  }

  std::string path_;
  FileFormat format_;
  std::vector<std::string> groups_;
  std::vector<CsvMark> marks_;
  std::string header_;
};

// Places at which every `stride`-th row of a table begins, and its end.
std::vector<CsvMark> ScanTable(const std::string& path, int64_t stride, const addend::Progress& progress) {
  uint64_t size = 0;
  const Descriptor file(OpenToRead(path, &size));
  std::vector<CsvMark> marks;
  int64_t row = -1;       // the first line has the names
  uint64_t text_end = 0;  // behind the last byte that is no line end
  bool returns = false;   // whether there is a carriage return, and
  bool feeds = false;     // a line feed
  CsvMark end;
  CsvLines lines;
  const auto take = [&](uint64_t behind, int64_t line) {
    ++row;
    const CsvMark mark = {row, behind, line};
    if (row % stride == 0) marks.push_back(mark);
    if (end.offset < text_end) end = mark;
  };
  constexpr uint64_t kPiece = uint64_t{1} << 20;
  for (uint64_t offset = 0; offset < size;) {
    const std::string buffer = ReadAt(file.get(), path, offset, std::min(kPiece, size - offset));
    const size_t got = buffer.size();
    returns = returns || absl::StrContains(buffer, '\r');
    feeds = feeds || absl::StrContains(buffer, '\n');
    // Line by line, so that empty lines at the end are found.
    for (size_t begin = 0; begin < got;) {
      const auto* line_end = static_cast<const char*>(std::memchr(buffer.data() + begin, '\n', got - begin));
      const size_t piece =
          line_end == nullptr ? got - begin : static_cast<size_t>(line_end - buffer.data()) + 1 - begin;
      for (size_t k = begin + piece; k-- > begin;) {
        if (buffer[k] == '\n' || buffer[k] == '\r') continue;
        text_end = offset + k + 1;
        break;
      }
      lines.Add(buffer.data() + begin, piece, take);
      begin += piece;
    }
    offset += got;
    if (progress) progress(static_cast<int64_t>(offset), static_cast<int64_t>(size));
  }
  lines.End(take);
  // Lines without anything at the end are no rows.
  while (!marks.empty() && marks.back().offset >= end.offset) marks.pop_back();
  if (marks.empty() && text_end == 0) {
    throw InvalidArgument(absl::StrCat(path, " is empty; its first line has to name the columns"));
  }
  if (marks.empty() && returns && !feeds) {
    throw InvalidArgument(absl::StrCat(path, ": its lines end with CR; they have to end with LF or CR LF"));
  }
  if (marks.empty()) throw InvalidArgument(absl::StrCat(path, " has names of columns, but no rows"));
  marks.push_back(end);
  return marks;
}

// -------------------------------------------------------------------------------------------------------- folders

class FolderRows : public RowSource {
 public:
  // row: what each row is, as the plan says; none: what the first file is that can be read.
  FolderRows(std::string path, FileFormat format, std::optional<JobInput> row)
      : path_(std::move(path)), format_(std::move(format)) {
    std::error_code error;
    for (fs::directory_iterator entry(path_, error), end; !error && entry != end; entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      if (!absl::StartsWith(name, ".") && IsRow(*entry)) names_.push_back(name);
    }
    if (error) throw FileError("read", path_, error.value());
    if (names_.empty()) throw InvalidArgument(absl::StrCat(path_, " has no files"));
    std::sort(names_.begin(), names_.end());
    row_ = row ? std::move(*row) : FindRow();
  }

  int64_t rows() const override { return static_cast<int64_t>(names_.size()); }

  DataRows Read(int64_t first, int64_t count) const override {
    DataRows rows;
    rows.first = first;
    Sha256Digest digest;
    std::vector<int64_t> one = row_.shape;
    one.insert(one.begin(), 1);
    std::vector<at::Tensor> found;
    for (int64_t k = first; k < first + count; ++k) {
      const std::string path = PathOf(k);
      const bool nowhere = LeadsNowhere(path);
      const std::string bytes = nowhere ? "" : ReadFileWhole(path);
      AddTo(digest, k, nowhere ? kNowhere : Sha256(bytes));
      try {
        if (nowhere) throw NotFound(absl::StrCat(path, " is a link to a file that is not there"));
        const at::Tensor own = RowOf(DecodeInputFile(bytes, path, format_), path);
        if (own.sizes() != at::IntArrayRef(one) || own.scalar_type() != row_.dtype) {
          throw InvalidArgument(absl::StrCat(path, " is ", TensorText(own.scalar_type(), own.sizes().slice(1)),
                                             ", and other rows are ", TensorText(row_.dtype, row_.shape)));
        }
        found.push_back(own);
      } catch (const Error& error) {
        found.push_back(at::zeros(one, row_.dtype));
        rows.refused.push_back({k, error.what()});
      }
    }
    rows.inputs.push_back(at::cat(found));
    rows.sha256 = digest.Hex();
    return rows;
  }

  std::string Digest(int64_t first, int64_t count) const override {
    Sha256Digest digest;
    for (int64_t k = first; k < first + count; ++k) {
      AddTo(digest, k, LeadsNowhere(PathOf(k)) ? kNowhere : Sha256OfFile(PathOf(k)));
    }
    return digest.Hex();
  }

  Json Describe(const std::string& plan_path, int64_t) const override {
    return {{"files", {{{"path", ToPlan(plan_path, path_)}}}}, {"format", FormatJson(format_)}, {"kind", kFolder}};
  }

  // The first file that can be read, of a source that was given no row.
  const TensorFile& First() const { return first_; }

 private:
  static constexpr char kNowhere[] = "-";  // in place of a digest

  // Folders are no rows, nor is what has no end.
  static bool IsRow(const fs::directory_entry& entry) {
    std::error_code error;
    const fs::file_type type = entry.status(error).type();
    return type == fs::file_type::regular || type == fs::file_type::not_found || type == fs::file_type::none;
  }

  static bool LeadsNowhere(const std::string& path) {
    std::error_code error;
    return fs::is_symlink(fs::symlink_status(path, error)) && !fs::exists(path, error) && !error;
  }

  JobInput FindRow() {
    std::string why;
    for (int64_t k = 0; k < rows(); ++k) {
      try {
        first_ = DecodeInputFile(ReadFileWhole(PathOf(k)), PathOf(k), format_);
        const at::Tensor own = RowOf(first_, PathOf(k));
        first_.tensors = {{"input", own}};
        return {"", own.scalar_type(), own.sizes().slice(1).vec()};
      } catch (const Error& error) {
        if (why.empty()) why = error.what();
      }
    }
    throw InvalidArgument(absl::StrCat("no file can be read; the first: ", why));
  }

  std::string PathOf(int64_t row) const { return absl::StrCat(path_, "/", names_[static_cast<size_t>(row)]); }

  void AddTo(Sha256Digest& digest, int64_t row, const std::string& sha256) const {
    const std::string line = absl::StrCat(sha256, "  ", names_[static_cast<size_t>(row)], "\n");
    digest.Add(line.data(), line.size());
  }

  // [1, *row]
  at::Tensor RowOf(const TensorFile& file, const std::string& path) const {
    const at::Tensor& own = SelectTensor(file, {path, ""}, {"input"}).second;
    if (own.dim() == 0 || own.size(0) != 1) {
      throw InvalidArgument(
          absl::StrCat(path, " is ", ShapeText(own.sizes()), "; each file of a folder holds one row, as [1, ...]"));
    }
    return at::isFloatingType(own.scalar_type()) ? own.to(format_.dtype) : own;
  }

  std::string path_;
  FileFormat format_;
  JobInput row_;  // what each row is
  TensorFile first_;
  std::vector<std::string> names_;
};

}  // namespace

JobData OpenJobData(const RunArguments& arguments, const std::vector<std::string>& groups, int64_t stride,
                    const addend::Progress& progress) {
  const std::vector<TensorPlace> places = InputPlaces(arguments);
  const FileFormat format = ReadFormat(arguments);
  JobData data;
  const std::string& path = places.at(0).path;
  if (IsCsvPath(path) || FolderExists(path)) {
    if (places.size() > 1) {
      throw InvalidArgument(
          absl::StrCat(path, " holds the rows of a model with one input; others are given as tensors"));
    }
    if (!IsCsvPath(path)) {
      if (!groups.empty()) throw InvalidArgument("--group names a column of a table, or a tensor beside the input");
      auto rows = std::make_unique<FolderRows>(path, format, std::nullopt);
      data.first.push_back(rows->First());
      data.source = std::move(rows);
      return data;
    }
    auto rows = std::make_unique<TableRows>(path, format, groups, ScanTable(path, stride, progress));
    data.first.push_back(rows->First());
    data.source = std::move(rows);
    return data;
  }
  std::vector<TensorPlace> columns;
  for (const std::string& group : groups) columns.push_back({path, group});
  for (const TensorPlace& place : places) {
    const StoredRows stored(place, {"input"});
    TensorFile& first = data.first.emplace_back();
    first.tensors.emplace_back("input", stored.Read(0, std::min<int64_t>(1, stored.rows())));
    first.metadata = stored.metadata();
  }
  data.source = OpenTensorRows(places, columns);
  return data;
}

std::shared_ptr<const RowSource> OpenPlannedRows(const JobPlan& plan, const std::string& plan_path) {
  try {
    const std::string kind = plan.data.at("kind").get<std::string>();
    if (kind != kTable && kind != kFolder) return OpenRows(plan, plan_path);
    const std::string path = FromPlan(plan_path, plan.data.at("files").at(0).at("path").get<std::string>());
    FileFormat format = FormatOf(plan.data.at("format"), plan_path);
    if (kind == kFolder) {
      auto rows = std::make_shared<FolderRows>(path, std::move(format), plan.inputs.at(0));
      if (rows->rows() == plan.rows) return rows;
      throw FailedPrecondition(
          absl::StrCat(path, " has ", rows->rows(), " files, and had ", plan.rows, " when the plan was made"));
    }
    std::vector<CsvMark> marks;
    for (const Json& mark : plan.data.at("marks")) {
      marks.push_back({mark.at(0).get<int64_t>(), mark.at(1).get<uint64_t>(), mark.at(2).get<int64_t>()});
    }
    if (marks.size() < 2) throw InvalidArgument(absl::StrCat(plan_path, " does not say where rows begin"));
    return std::make_shared<TableRows>(path, std::move(format), plan.data.at("groups").get<std::vector<std::string>>(),
                                       std::move(marks));
  } catch (const Json::exception&) {
    throw InvalidArgument(absl::StrCat(plan_path, " does not say how its rows are read"));
  }
}

}  // namespace addend::cli
