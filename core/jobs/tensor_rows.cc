#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/tensor_text.h"
#include "core/jobs/job_plan.h"
#include "core/jobs/rows.h"
#include "core/program/sha256.h"

namespace addend {
namespace {

class TensorRows : public RowSource {
 public:
  TensorRows(std::vector<StoredRows> stored, std::vector<StoredRows> groups, std::vector<TensorPlace> places,
             std::vector<TensorPlace> group_places)
      : stored_(std::move(stored)),
        groups_(std::move(groups)),
        places_(std::move(places)),
        group_places_(std::move(group_places)) {}

  int64_t rows() const override { return stored_.front().rows(); }

  DataRows Read(int64_t first, int64_t count) const override {
    DataRows rows;
    rows.first = first;
    Sha256Digest digest;
    const auto read = [&](const StoredRows& stored) {
      at::Tensor tensor = stored.Read(first, count);
      const std::string what = absl::StrCat(TensorText(tensor), "\n");
      digest.Add(what.data(), what.size());
      digest.Add(static_cast<const char*>(tensor.data_ptr()), tensor.nbytes());
      return tensor;
    };
    for (const StoredRows& stored : stored_) rows.inputs.push_back(read(stored));
    for (const StoredRows& stored : groups_) {
      const at::Tensor numbers = read(stored).to(at::kLong);
      std::vector<std::string>& texts = rows.groups.emplace_back();
      for (int64_t row = 0; row < count; ++row) texts.push_back(absl::StrCat(numbers.data_ptr<int64_t>()[row]));
    }
    rows.sha256 = digest.Hex();
    return rows;
  }

  Json Describe(const std::string& plan_path, int64_t) const override {
    const auto list = [&](const std::vector<TensorPlace>& places) {
      Json files = Json::array();
      for (const TensorPlace& place : places) {
        files.push_back({{"path", ToPlan(plan_path, place.path)}, {"tensor", place.tensor}});
      }
      return files;
    };
    return {{"files", list(places_)}, {"groups", list(group_places_)}, {"kind", "tensors"}};
  }

 private:
  const std::vector<StoredRows> stored_;
  const std::vector<StoredRows> groups_;
  const std::vector<TensorPlace> places_;
  const std::vector<TensorPlace> group_places_;
};

}  // namespace

std::unique_ptr<RowSource> OpenTensorRows(const std::vector<TensorPlace>& places,
                                          const std::vector<TensorPlace>& groups) {
  if (places.empty()) throw InvalidArgument("there is no file to read rows from; name one for each input of the model");
  std::vector<StoredRows> stored;
  std::vector<StoredRows> columns;
  const auto open = [&](const TensorPlace& place, std::vector<StoredRows>& all) {
    all.emplace_back(place, std::vector<std::string>{"input"});
    const StoredRows& own = all.back();
    if (own.rows() == stored.front().rows()) return;
    throw InvalidArgument(absl::StrCat(own.place(), " has ", own.rows(), " rows, but ", stored.front().place(), " has ",
                                       stored.front().rows()));
  };
  for (const TensorPlace& place : places) open(place, stored);
  for (const TensorPlace& place : groups) {
    open(place, columns);
    const StoredRows& own = columns.back();
    if (own.shape().size() != 1 || !at::isIntegralType(own.dtype(), /*includeBool=*/true)) {
      throw InvalidArgument(absl::StrCat(own.place(), " is ", TensorText(own.dtype(), own.shape()),
                                         "; rows are put together by one integer each"));
    }
  }
  return std::make_unique<TensorRows>(std::move(stored), std::move(columns), places, groups);
}

}  // namespace addend
