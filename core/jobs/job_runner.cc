#include "core/jobs/job_runner.h"

#include <ATen/ops/all.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/tensor.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/audit/canonical_json.h"
#include "core/audit/environment.h"
#include "core/audit/model_source.h"
#include "core/audit/tensors.h"
#include "core/base/error.h"
#include "core/base/tensor_text.h"
#include "core/base/utf8.h"
#include "core/explain/examples.h"
#include "core/jobs/receipt.h"
#include "core/program/tensor_io.h"

namespace addend {
namespace {

// Failures that another machine, or the same one later, does not have: no row is to blame.
bool IsOfMachine(const Error& error) {
  return error.code() == absl::StatusCode::kResourceExhausted || error.code() == absl::StatusCode::kCancelled ||
         absl::StrContains(error.what(), "allocate memory") || absl::StrContains(error.what(), "out of memory");
}

// "[3]" of the element with this number in a row.
std::string PlaceText(int64_t number, at::IntArrayRef row) {
  std::vector<int64_t> index(row.size());
  for (size_t d = row.size(); d-- > 0;) {
    index[d] = number % row[d];
    number /= row[d];
  }
  return absl::StrCat("[", absl::StrJoin(index, ", "), "]");
}

// Why each row cannot be a model's input; empty texts where it can.
std::vector<std::string> WhyRefused(const JobPlan& plan, const DataRows& rows) {
  std::vector<std::string> why(static_cast<size_t>(rows.count()));
  for (const RefusedRow& refused : rows.refused) why.at(static_cast<size_t>(refused.row - rows.first)) = refused.reason;
  for (size_t k = 0; k < rows.inputs.size(); ++k) {
    const at::Tensor& all = rows.inputs[k];
    if (!at::isFloatingType(all.scalar_type()) || at::isfinite(all).all().item<bool>()) continue;
    for (int64_t row = 0; row < all.size(0); ++row) {
      std::string& own = why[static_cast<size_t>(row)];
      const at::Tensor finite = at::isfinite(all[row]).reshape({-1});
      if (!own.empty() || finite.all().item<bool>()) continue;
      const int64_t number = finite.logical_not().to(at::kByte).argmax().item<int64_t>();
      own = absl::StrCat("element ", PlaceText(number, all[row].sizes()), " of ", plan.inputs.at(k).name,
                         " is no finite number");
    }
  }
  return why;
}

bool SameBits(const Contributions& a, const Contributions& b) {
  const auto same = [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); };
  return same(a.value, b.value) && same(a.reference, b.reference) && same(a.leftover, b.leftover) &&
         std::equal(a.contributions.begin(), a.contributions.end(), b.contributions.begin(), b.contributions.end(),
                    same);
}

// The places in [begin, end) of rows that are not refused.
std::vector<int64_t> Accepted(const std::vector<std::string>& why, int64_t begin, int64_t end) {
  std::vector<int64_t> places;
  for (int64_t place = begin; place < end; ++place) {
    if (why[static_cast<size_t>(place)].empty()) places.push_back(place);
  }
  return places;
}

// Rows of each tensor, by their places.
std::vector<at::Tensor> Choose(const std::vector<at::Tensor>& tensors, const std::vector<int64_t>& places) {
  const auto count = static_cast<int64_t>(places.size());
  const bool together = count > 0 && places.back() - places.front() == count - 1;
  std::vector<at::Tensor> chosen;
  for (const at::Tensor& all : tensors) {
    chosen.push_back(together ? all.narrow(0, places.front(), count) : all.index_select(0, at::tensor(places)));
  }
  return chosen;
}

// Index of the element that each component is in a row, counted input after input; -1 if it is none or several.
std::vector<int64_t> SingleElements(const PreparedInputs& prepared, int64_t numc) {
  std::vector<int64_t> single(static_cast<size_t>(numc), -1);
  std::vector<bool> several(static_cast<size_t>(numc), false);
  int64_t before = 0;
  for (const PreparedInput& input : prepared.inputs) {
    if (input.labels.defined()) {
      const at::Tensor labels = input.labels.cpu().contiguous();
      for (int64_t e = 0; e < labels.numel(); ++e) {
        const int64_t label = labels.data_ptr<int64_t>()[e];
        if (label < 0 || label >= numc) continue;
        const auto c = static_cast<size_t>(label);
        several[c] = several[c] || single[c] >= 0;
        single[c] = before + e;
      }
    }
    before += input.value.numel();
  }
  for (size_t c = 0; c < single.size(); ++c) {
    if (several[c]) single[c] = -1;
  }
  return single;
}

std::string MachineName() {
  struct utsname names = {};
  return ::uname(&names) == 0 ? names.nodename : "unknown";
}

int64_t PeakMemory() {
  struct rusage usage = {};
  return ::getrusage(RUSAGE_SELF, &usage) == 0 ? int64_t{usage.ru_maxrss} * 1024 : 0;
}

}  // namespace

std::unique_ptr<RowSource> OpenRows(const JobPlan& plan, const std::string& plan_path) {
  const std::string kind = plan.data.value("kind", "");
  if (kind != "tensors") {
    throw Unimplemented(
        absl::StrCat("rows of the kind \"", kind, "\" are read by the program addend: addend job run ", plan_path));
  }
  const auto places = [&](const char* key) {
    std::vector<TensorPlace> found;
    for (const Json& file : plan.data.at(key)) {
      found.push_back({FromPlan(plan_path, file.at("path").get<std::string>()), file.at("tensor").get<std::string>()});
    }
    return found;
  };
  try {
    return OpenTensorRows(places("files"), places("groups"));
  } catch (const Json::exception&) {
    throw InvalidArgument(absl::StrCat(plan_path, " does not say in which files its rows are"));
  }
}

void RequireSameEnvironment(const JobPlan& plan, const Writer& writer) {
  const Json then = {{"addend", plan.addend}, {"libtorch", plan.libtorch}};
  const Json now = {{"addend", {{"version", writer.version}}}, {"libtorch", LibTorchJson(writer, plan.device())}};
  const std::vector<std::string> differences = Differences(then, now);
  if (differences.empty()) return;
  throw FailedPrecondition(absl::StrCat("this process computes other bits than the one that made the plan: ",
                                        absl::StrJoin(differences, "; ")));
}

JobRunner::JobRunner(const std::string& plan_path, std::shared_ptr<const RowSource> source, const Writer& writer)
    : plan_path_(plan_path),
      plan_(LoadJobPlan(plan_path)),
      plan_sha256_(Sha256OfPlan(plan_)),
      source_(std::move(source)),
      writer_(writer) {
  RequireSameEnvironment(plan_, writer_);
  const std::string path = FromPlan(plan_path, plan_.model);
  const std::string digest = Sha256OfModel(path);
  if (digest != plan_.model_sha256) {
    throw FailedPrecondition(absl::StrCat(path, " is not the model that the plan was made for: its SHA-256 is ", digest,
                                          ", that of the plan ", plan_.model_sha256));
  }
  ModelSource how;
  how.dtype = plan_.dtype;
  how.device = plan_.device();
  model_ = LoadModelAs(path, how);
  if (source_ == nullptr) source_ = OpenRows(plan_, plan_path);
  ReadRequest();
}

JobRunner::JobRunner(JobPlan plan, std::shared_ptr<Model> model, std::shared_ptr<const RowSource> source,
                     const Writer& writer)
    : plan_(std::move(plan)), source_(std::move(source)), writer_(writer), model_(std::move(model)) {
  ReadRequest();
}

void JobRunner::ReadRequest() {
  try {
    device_ = DeviceOfWord(plan_.device());
    request_ = RequestOfJson(plan_.request, Json::array(), device_);
    if (!plan_.concepts.is_null()) concepts_ = ReadConcepts(Dump(plan_.concepts));
  } catch (const Json::exception&) {
    throw InvalidArgument(absl::StrCat(plan_path_, " is no plan of a job: its request lacks something"));
  }
  if (request_.inputs.size() != plan_.inputs.size()) {
    throw InvalidArgument(
        absl::StrCat("the request is for ", request_.inputs.size(), " inputs, but rows have ", plan_.inputs.size()));
  }
  for (size_t k = 0; k < request_.inputs.size(); ++k) request_.inputs[k].name = plan_.inputs[k].name;
}

std::vector<Input> JobRunner::InputsOf(const std::vector<at::Tensor>& rows) const {
  std::vector<Input> inputs = request_.inputs;
  for (size_t k = 0; k < inputs.size(); ++k) inputs[k].value = rows.at(k);
  return inputs;
}

std::vector<at::Tensor> JobRunner::OnDevice(const std::vector<at::Tensor>& rows) const {
  std::vector<at::Tensor> there;
  for (const at::Tensor& input : rows) there.push_back(input.to(device_));
  return there;
}

void JobRunner::Prepare(const DataRows& first) {
  if (first.sha256 != plan_.first_batch) {
    throw FailedPrecondition("the first rows of the data set are not those that the plan was made for");
  }
  const std::vector<std::string> why = WhyRefused(plan_, first);
  const std::vector<int64_t> places = Accepted(why, 0, first.count());
  if (places.empty()) {
    throw FailedPrecondition(absl::StrCat("no row of the first batch can be attributed; the first: ", why.front()));
  }
  const std::vector<Input> one = InputsOf(OnDevice(Choose(first.inputs, {places.front()})));
  single_ = SingleElements(addend::Prepare(one, model_->NamedTensors()), static_cast<int64_t>(plan_.components.size()));
  if (plan_.ready)
    ready_ = AttributionPlan::Make(model_, InputsOf(OnDevice(Choose(first.inputs, places))), request_.options);
  prepared_ = true;
}

void JobRunner::RequirePureRows(const DataRows& rows, bool exact) {
  const std::vector<int64_t> places = Accepted(WhyRefused(plan_, rows), 0, rows.count());
  const Attribution together = Attribute(Choose(rows.inputs, places));
  const Attribution again = Attribute(Choose(rows.inputs, places));
  for (size_t t = 0; t < together.targets.size(); ++t) {
    if (SameBits(together.targets[t], again.targets.at(t))) continue;
    throw FailedPrecondition(
        "the model gives other numbers for the same rows each time, as one that draws random numbers does, so that no "
        "result could be computed again; put the model into evaluation mode");
  }
  if (places.size() < 2) return;
  for (const size_t which : {size_t{0}, places.size() - 1}) {
    const Attribution alone = Attribute(Choose(rows.inputs, {places[which]}));
    for (size_t t = 0; t < plan_.targets(); ++t) {
      RequireNoInfluence(together.targets.at(t * places.size() + which), alone.targets.at(t), exact);
    }
  }
}

Attribution JobRunner::Attribute(const std::vector<at::Tensor>& rows) {
  // A prepared attribution keeps something for each size that it meets: it is given the usual ones only.
  const std::vector<at::Tensor> there = OnDevice(rows);
  const int64_t count = rows.front().size(0);
  const int64_t last = (plan_.rows - 1) % plan_.batch + 1;
  if (ready_ != nullptr && (count == plan_.batch || count == last)) {
    try {
      return ready_->Attribute(there);
    } catch (const Error& error) {
      // These rows lead the model another way than the first ones.
      if (error.code() != absl::StatusCode::kFailedPrecondition) throw;
    }
  }
  return addend::Attribute(TracedModel(model_), InputsOf(there), request_.options, influence_);
}

std::vector<double> JobRunner::ElementsOf(const std::vector<at::Tensor>& values, int64_t row) const {
  std::vector<double> all;
  for (const at::Tensor& input : values) {
    const at::Tensor own = input[row].reshape({-1}).to(at::kDouble).contiguous();
    all.insert(all.end(), own.data_ptr<double>(), own.data_ptr<double>() + own.numel());
  }
  std::vector<double> elements;
  for (const int64_t place : single_) {
    elements.push_back(place < 0 ? std::numeric_limits<double>::quiet_NaN() : all.at(static_cast<size_t>(place)));
  }
  return elements;
}

void JobRunner::Take(const DataRows& rows, const std::vector<int64_t>& places, const std::vector<at::Tensor>& values,
                     const Attribution& attribution, ShardTable& table, ComputedShard& computed) const {
  std::vector<Aggregates>& aggregates = computed.aggregates;
  const auto examples = static_cast<int64_t>(places.size());
  std::optional<Reasons> reasons;
  if (concepts_) {
    ExplainedRun run;
    run.report = attribution.report;
    run.classes = plan_.classes;
    for (const Input& input : InputsOf(values)) run.inputs.push_back(DescribeInput(input));
    for (const std::string& name : plan_.components) run.components.list.push_back({name, {}, {}});
    reasons = FindReasons(attribution, /*each_example=*/true, request_.options.at, run, *concepts_, writer_);
  }
  AddNotesOf(attribution.report, rows.first + places.front(), examples, computed.notes);
  for (Aggregates& own : aggregates) own.AddRecoveryError(attribution.report.worst_recovery_error);
  for (int64_t i = 0; i < examples; ++i) {
    const int64_t place_of_row = places[static_cast<size_t>(i)];
    table.Take(rows.first + place_of_row, attribution, i, examples, reasons ? &*reasons : nullptr);
    std::vector<double> elements;
    for (size_t t = 0; t < aggregates.size(); ++t) {
      const Contributions& own = attribution.targets.at(t * static_cast<size_t>(examples) + static_cast<size_t>(i));
      RowNumbers numbers;
      numbers.row = rows.first + place_of_row;
      for (const std::vector<std::string>& column : rows.groups) {
        numbers.groups.push_back(column.at(static_cast<size_t>(place_of_row)));
      }
      numbers.value = own.value;
      numbers.reference = own.reference;
      numbers.leftover = own.leftover;
      numbers.conditioning = own.conditioning;
      numbers.contributions = own.contributions.data();
      if (aggregates[t].Samples(numbers.row)) {
        if (elements.empty()) elements = ElementsOf(values, i);
        numbers.elements = elements.data();
      }
      aggregates[t].Add(numbers);
    }
  }
}

ComputedShard JobRunner::Compute(const DataRows& rows, const Progress& progress) {
  // An error in the first batch is one of the job, and no reason to refuse rows.
  if (!prepared_) Prepare(source_->Read(0, std::min(plan_.batch, plan_.rows)));
  const int64_t count = rows.count();
  ComputedShard computed;
  ShardTable table(plan_, rows.first, count, concepts_ ? &*concepts_ : nullptr);
  for (size_t t = 0; t < plan_.targets(); ++t) {
    computed.aggregates.emplace_back(static_cast<int64_t>(plan_.components.size()), plan_.sampled(),
                                     plan_.groups.size());
  }
  const auto refuse = [&](int64_t row, const std::string& reason) {
    const std::string why = ToUtf8(reason);  // files and their names hold any bytes
    if (plan_.stop_at_refusal) throw InvalidArgument(absl::StrCat("row ", row, " is refused: ", why));
    table.Refuse({row, why});
    for (Aggregates& own : computed.aggregates) own.AddRefused();
  };
  const std::vector<std::string> why = WhyRefused(plan_, rows);
  for (int64_t begin = 0; begin < count; begin += plan_.batch) {
    const int64_t end = std::min(count, begin + plan_.batch);
    for (int64_t place = begin; place < end; ++place) {
      const std::string& own = why[static_cast<size_t>(place)];
      if (!own.empty()) refuse(rows.first + place, own);
    }
    const std::vector<int64_t> places = Accepted(why, begin, end);
    if (!places.empty()) {
      const std::vector<at::Tensor> values = Choose(rows.inputs, places);
      std::optional<Attribution> attribution;
      try {
        attribution = Attribute(values);
      } catch (const Error& error) {
        if (IsOfMachine(error)) throw;
      }
      if (attribution) {
        Take(rows, places, values, *attribution, table, computed);
      } else {
        computed.alone += static_cast<int64_t>(places.size());
        for (const int64_t place : places) {
          const std::vector<at::Tensor> own = Choose(rows.inputs, {place});
          std::optional<Attribution> alone;
          try {
            alone = addend::Attribute(TracedModel(model_), InputsOf(OnDevice(own)), request_.options);
          } catch (const Error& error) {
            if (IsOfMachine(error)) throw;
            refuse(rows.first + place, error.what());
          }
          if (alone) Take(rows, {place}, own, *alone, table, computed);
        }
      }
    }
    if (progress) progress(end, count);
  }
  computed.refused = table.refused();
  for (const RowNote& own : rows.notes) {
    if (!table.IsRefused(own.row)) computed.notes.Add(own.note, own.row, 1);
  }
  computed.bytes = table.Encode(computed.notes);
  return computed;
}

DataRows JobRunner::ReadShard(int64_t shard) const {
  if (shard < 0 || shard >= plan_.shards()) {
    throw InvalidArgument(absl::StrCat("there is no shard ", shard, ": the plan has ", plan_.shards(), ", from 0"));
  }
  const int64_t first = plan_.first_row(shard);
  DataRows rows = source_->Read(first, plan_.end_row(shard) - first);
  if (rows.sha256 != plan_.digests[static_cast<size_t>(shard)]) {
    throw FailedPrecondition(absl::StrCat("rows ", first, " to ", plan_.end_row(shard) - 1,
                                          " are not those that the plan was made for: their SHA-256 is ", rows.sha256,
                                          ", that of the plan ", plan_.digests[static_cast<size_t>(shard)]));
  }
  return rows;
}

std::optional<CommittedShard> JobRunner::FindDone(int64_t shard) {
  const auto begin = std::chrono::steady_clock::now();
  if (begin >= list_again_) {
    listed_ = FindCommitted(ResultsFolder(plan_path_));
    RequireOwnResults(plan_sha256_, plan_path_, listed_);
    const auto end = std::chrono::steady_clock::now();
    list_again_ = end + 100 * (end - begin);
  }
  const auto found = listed_.find(shard);
  // Somebody may have removed it since.
  if (found == listed_.end() || ::access(found->second.front().path.c_str(), F_OK) != 0) return std::nullopt;
  return found->second.front();
}

Json JobRunner::Run(int64_t shard, bool again, const Progress& progress) {
  const std::optional<CommittedShard> done = FindDone(shard);
  if (done && !again) return ReadShardReceipt(plan_, plan_sha256_, shard, *done).json;
  const auto begin = std::chrono::steady_clock::now();
  const DataRows rows = ReadShard(shard);
  ComputedShard computed = Compute(rows, progress);
  Json refused = Json::array();
  for (const RefusedRow& own : computed.refused) refused.push_back({{"reason", own.reason}, {"row", own.row}});
  Json aggregates = Json::array();
  for (const Aggregates& own : computed.aggregates) aggregates.push_back(own.ToJson());
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  Json receipt = {{"aggregates", std::move(aggregates)},
                  {"alone", computed.alone},
                  {"first", rows.first},
                  {"format", kReceiptFormat},
                  {"notes", NoteCountsJson(computed.notes)},
                  {"plan", plan_sha256_},
                  {"refused", std::move(refused)},
                  {"rows", rows.count()},
                  {"run",
                   {{"machine", MachineName()},
                    {"peak_memory", PeakMemory()},
                    {"process", static_cast<int64_t>(::getpid())},
                    {"seconds", RecordedNumber(seconds.count())}}},
                  {"shard", shard},
                  {"version", kReceiptVersion}};
  const CommittedShard committed =
      CommitShard(ResultsFolder(plan_path_), shard, computed.bytes, EndingOf(plan_.format), std::move(receipt));
  return ReadReceipt(committed.receipt);
}

}  // namespace addend
