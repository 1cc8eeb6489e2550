// Attributes data sets in shards: plans them, computes them, tells how far they are, puts them together, reports.
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "core/audit/tensors.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/jobs/commit.h"
#include "core/jobs/job_plan.h"
#include "core/jobs/job_runner.h"
#include "core/jobs/make_plan.h"
#include "core/jobs/merge.h"
#include "core/jobs/receipt.h"
#include "core/jobs/report.h"
#include "core/program/tensor_io.h"
#include "tools/addend/commands.h"
#include "tools/addend/describe.h"
#include "tools/addend/files.h"
#include "tools/addend/inputs.h"
#include "tools/addend/job_rows.h"
#include "tools/addend/progress.h"
#include "tools/addend/run.h"
#include "tools/addend/targets.h"
#include "tools/addend/text.h"

namespace addend::cli {
namespace {

constexpr int kLabel = 11;
constexpr size_t kMostTold = 10;

std::string Labelled(const std::string& label, const std::string& text, const Terminal& terminal) {
  return Hanging(PadRight(label, kLabel), text, terminal);
}

// "2 h 05 min", "3 min 20 s", "4.2 s"
std::string Duration(double seconds) {
  if (seconds < 60) return absl::StrCat(Number(seconds, 2), " s");
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 3600) return absl::StrCat(whole / 60, " min ", whole % 60, " s");
  return absl::StrCat(whole / 3600, " h ", whole % 3600 / 60, " min");
}

// "185 MB", "1.65 kB"
std::string Bytes(int64_t bytes) {
  const auto number = static_cast<double>(bytes);
  return number < 1e6 ? absl::StrCat(Number(number / 1e3, 3), " kB") : absl::StrCat(Number(number / 1e6, 3), " MB");
}

// "1000000, 3 refused"
std::string RowsText(const MergedJob& merged) {
  return absl::StrCat(merged.rows, merged.refused_rows == 0 ? "" : absl::StrCat(", ", merged.refused_rows, " refused"));
}

// A line for rows whose numbers are not finite, where there are any.
std::string NotFiniteText(int64_t count, const Terminal& terminal) {
  if (count == 0) return "";
  return Labelled("Not finite",
                  absl::StrCat("in ", Plural(static_cast<size_t>(count), "row"),
                               ", each counted for each target: their value, reference, leftover or some contribution"),
                  terminal);
}

// Notes on runs, warnings first, each with the first row that it is about.
std::string NotesText(const NoteCounts& notes, const Terminal& terminal) {
  std::string text;
  for (const CountedNote& own : notes.list()) {
    text += Labelled(own.warning ? "Warning" : "Note",
                     absl::StrCat("in runs with ", Plural(static_cast<size_t>(own.count), "row"), ", from row ",
                                  own.first, " on: ", Clean(own.note)),
                     terminal);
  }
  return text;
}

// Reads a plan, and takes the threads that it was made with.
JobPlan OpenPlan(const std::string& path) {
  JobPlan plan = LoadJobPlan(path);
  const auto threads = plan.libtorch.find("threads");
  if (threads != plan.libtorch.end() && threads->is_number_integer()) at::set_num_threads(threads->get<int>());
  return plan;
}

// Most tasks of an array: one less than MaxArraySize of a Slurm that was not told otherwise.
constexpr int64_t kMostTasks = 1000;

// A path that means the same wherever a process begins. The file itself may be a link, whose name tells the results.
std::string Whole(const std::string& path) {
  const std::filesystem::path whole = std::filesystem::absolute(path);
  return (std::filesystem::weakly_canonical(whole.parent_path()) / whole.filename()).string();
}

// Folder for the output of tasks: "rows.slurm" for "rows.json". Not the folder of results, which may be removed to
// begin anew: Slurm does not make folders, and a task without one fails.
std::string SlurmFolder(const std::string& path) {
  return std::filesystem::path(ResultsFolder(Whole(path))).replace_extension(".slurm").string();
}

// Throws InvalidArgument for paths that no script can name to Slurm: a line of #SBATCH ends with the line, and a
// backslash in the name of an output turns "%A" off.
void RequireSlurmPath(const std::string& path) {
  const std::string whole = Whole(path);
  if (std::any_of(whole.begin(), whole.end(), [](unsigned char c) { return c < ' ' || c == '\\'; })) {
    throw InvalidArgument(absl::StrCat("--slurm: Slurm cannot write to a path with a backslash or a line break, as \"",
                                       absl::CHexEscape(whole), "\" has; give --out a place whose path has neither"));
  }
}

// Script for sbatch. Task t computes shards t, t + tasks, ... Paths are absolute, as tasks begin where sbatch was
// called.
std::string SlurmScript(const JobPlan& plan, const std::string& path) {
  const std::string quoted = ShellWord(Whole(path));
  const std::string folder = absl::StrReplaceAll(SlurmFolder(path), {{"%", "%%"}});  // Slurm puts numbers in for "%A"
  const int64_t tasks = std::min(plan.shards(), kMostTasks);
  const std::string array = absl::StrCat("0-", tasks - 1);
  const std::string threads = absl::StrCat(plan.libtorch.at("threads").get<int>());
  std::string script = absl::StrCat("#!/bin/sh\n#SBATCH --job-name=addend\n#SBATCH --array=", array,
                                    "\n#SBATCH --cpus-per-task=", threads,
                                    "\n#SBATCH --requeue\n#SBATCH --open-mode=append\n#SBATCH --output=\"",
                                    absl::StrReplaceAll(folder, {{"\"", "\\\""}}), "/%A_%a.txt\"\n");
  absl::StrAppend(&script, "# ", plan.shards(), " shards of ", quoted, ". Where this script is job.sh:\n",
                  "#   id=$(sbatch --parsable job.sh)\n",
                  "# with what the site asks for, such as --mem=2G --time=60, and --array=", array,
                  "%8 for 8 tasks at once. The same line again\n# computes what is missing after a failure. Then:\n",
                  "#   sbatch --dependency=afterany:$id --output=", ShellWord(folder + "/merge.txt"), " --wrap ",
                  ShellWord("addend job merge " + quoted), "\n");
  absl::StrAppend(&script, "export OMP_NUM_THREADS=", threads, "\n");
  // Nodes that choose other kernels by themselves have to be told of the same.
  if (const char* kernels = std::getenv("OPENBLAS_CORETYPE"); kernels != nullptr) {
    absl::StrAppend(&script, "export OPENBLAS_CORETYPE=", ShellWord(kernels), "\n");
  }
  absl::StrAppend(&script, "shard=${SLURM_ARRAY_TASK_ID:?is not set: this script is for sbatch}\n",
                  "set -- --shard \"$shard\"\n");
  if (tasks < plan.shards()) {
    absl::StrAppend(&script, "while shard=$((shard + ", tasks, ")); [ \"$shard\" -lt ", plan.shards(),
                    " ]; do set -- \"$@\" --shard \"$shard\"; done\n");
  }
  return absl::StrCat(script, "exec addend job run ", quoted, " \"$@\"\n");
}

// Adds the model and the data of a plan.
void AddPlannedFiles(const std::string& path, const JobPlan& plan, std::vector<std::string>* files) {
  AddModelFiles(FromPlan(path, plan.model), files);
  if (const auto data = plan.data.find("files"); data != plan.data.end() && data->is_array()) {
    for (const Json& file : *data) {
      if (file.is_object() && file.contains("path") && file["path"].is_string()) {
        files->push_back(FromPlan(path, file["path"].get<std::string>()));
      }
    }
  }
}

// Throws where the plan would become a row of the folder that it is made of.
void RequireNoRow(const JobPlanArguments& arguments) {
  const std::filesystem::path folder = std::filesystem::path(Whole(arguments.out)).parent_path();
  for (const TensorPlace& input : InputPlaces(arguments.run)) {
    if (!FolderExists(input.path) || !IsSamePlace(folder.string(), input.path)) continue;
    throw InvalidArgument(absl::StrCat("cannot write ", arguments.out, ": each file of the folder ", input.path,
                                       " is a row; write the plan elsewhere"));
  }
}

// Throws where the plan or what it names is where standard output goes.
void CheckPlanned(const std::string& path, const JobPlan& plan) {
  std::vector<std::string> sources = {path};
  AddPlannedFiles(path, plan, &sources);
  CheckOutputs({}, sources);
}

}  // namespace

int RunJobPlan(const JobPlanArguments& arguments) {
  const Terminal terminal = StdoutTerminal();
  ParsePolicy(arguments.run.policy);
  if (arguments.slurm) RequireSlurmPath(arguments.out);
  CheckOutputs({{"--out", arguments.out}},
               SourcesOf(arguments.run, {arguments.names, arguments.classes, arguments.reasons}));
  RequireNoRow(arguments);
  at::set_num_threads(static_cast<int>(arguments.threads));
  Progress progress;
  JobData data = OpenJobData(arguments.run, arguments.groups, arguments.batch, [&](int64_t done, int64_t total) {
    progress.Show("reading the data", done >> 20, total >> 20);
  });
  LoadedRun run = Load(arguments.run, &data.first);
  RequireOneBaseline(run);
  const ExplainedRun described = DescribeRun(run, arguments.names, arguments.classes);
  JobDraft draft;
  draft.plan_path = arguments.out;
  draft.source = std::move(data.source);
  draft.model = run.model_path;
  draft.loaded = run.model;
  draft.model_sha256 = run.model_sha256;
  if (!arguments.run.dtype.empty()) draft.dtype = DtypeOfWord(arguments.run.dtype);
  draft.device = arguments.run.device;
  for (LoadedInput& loaded : run.inputs) {
    loaded.input.name = loaded.name;
    draft.request.inputs.push_back(loaded.input);
  }
  draft.request.options.policy = run.policy;
  draft.request.options.at = run.request.at;
  draft.request.options.targets.clear();
  for (const std::string& text : arguments.targets) {
    draft.request.options.targets.push_back(FindTarget(text, described.classes));
  }
  if (draft.request.options.targets.empty()) draft.request.options.targets.emplace_back();
  for (const Component& component : described.components.list) draft.names.push_back(component.name);
  draft.classes = described.classes;
  draft.groups = arguments.groups;
  if (!arguments.reasons.empty()) draft.concepts = ReadFileWhole(arguments.reasons);
  draft.contributions = !arguments.no_contributions;
  draft.format = arguments.format;
  draft.stop_at_refusal = arguments.stop_at_refusal;
  draft.batch = arguments.batch;
  draft.shards = arguments.shards;
  const MadePlan made = MakeJobPlan(std::move(draft), ThisProgram(), [&](int64_t done, int64_t total) {
    progress.Show("taking digests of the data", done, total);
  });
  progress.Clear();
  SaveJobPlan(made.plan, arguments.out);
  if (arguments.slurm) {
    MakeFolder(SlurmFolder(arguments.out));
    WriteStdout(SlurmScript(made.plan, arguments.out));
    return kSuccess;
  }
  if (arguments.json) {
    WriteStdout(Dump(MadePlanJson(made, arguments.out), 1) + "\n");
    return kSuccess;
  }
  std::string text = Labelled(
      "Rows", absl::StrCat(made.plan.rows, " of ", Plural(made.plan.components.size(), "part"), " each"), terminal);
  text += Labelled("Shards",
                   absl::StrCat(made.plan.shards(), " of ", std::min(made.plan.shard_rows, made.plan.rows),
                                " rows, in batches of ", made.plan.batch),
                   terminal);
  text += Labelled("Time",
                   absl::StrCat("about ", Duration(made.seconds()), " for one worker, at ",
                                Number(made.rows_per_second, 3), " rows a second",
                                made.plan.ready ? ""
                                                : "; the model runs and is recorded for each batch, as it cannot be "
                                                  "planned"),
                   terminal);
  text += Labelled("Written", absl::StrCat(arguments.out, "; next: addend job run ", arguments.out), terminal);
  WriteStdout(text);
  return kSuccess;
}

int RunJobRun(const JobRunArguments& arguments) {
  const JobPlan plan = OpenPlan(arguments.plan);
  CheckPlanned(arguments.plan, plan);
  std::vector<int64_t> shards = arguments.shards;
  for (const int64_t shard : shards) {
    if (shard >= plan.shards()) {
      throw InvalidArgument(absl::StrCat("there is no shard ", shard, ": the plan has ", plan.shards(), ", from 0"));
    }
  }
  if (shards.empty()) {
    const CommittedShards committed = FindCommitted(ResultsFolder(arguments.plan));
    RequireOwnResults(Sha256OfPlan(plan), arguments.plan, committed);
    for (int64_t shard = 0; shard < plan.shards(); ++shard) {
      if (arguments.again || committed.count(shard) == 0) shards.push_back(shard);
    }
  }
  if (shards.empty()) {
    WriteStdout(
        absl::StrCat("All ", plan.shards(), " shards are there; next: addend job merge ", arguments.plan, "\n"));
    return kSuccess;
  }
  Progress progress;
  JobRunner worker(arguments.plan, OpenPlannedRows(plan, arguments.plan), ThisProgram());
  for (const int64_t shard : shards) {
    const Json receipt = worker.Run(shard, arguments.again, [&](int64_t done, int64_t total) {
      progress.Show(absl::StrCat("shard ", shard, " of ", plan.shards(), ", rows"), done, total);
    });
    progress.Clear();
    const size_t refused = receipt.at("refused").size();
    WriteStdout(absl::StrCat("shard ", shard, " of ", plan.shards(), ": rows ", plan.first_row(shard), " to ",
                             plan.end_row(shard) - 1, refused == 0 ? "" : absl::StrCat(", ", refused, " refused"),
                             "\n"));
  }
  return kSuccess;
}

int RunJobStatus(const JobStatusArguments& arguments) {
  const JobPlan plan = LoadJobPlan(arguments.plan);
  CheckPlanned(arguments.plan, plan);
  const JobStatus status = StatusOfJob(plan, arguments.plan);
  if (arguments.json) {
    WriteStdout(Dump(JobStatusJson(status), 1) + "\n");
    return status.wrong.empty() ? kSuccess : kDoesNotAddUp;
  }
  const Terminal terminal = StdoutTerminal();
  std::string text =
      Labelled("Shards",
               absl::StrCat(status.done, " of ", status.shards,
                            !status.merged                 ? " are done"
                            : status.done == status.shards ? " are done, and merged"
                                                           : " are done; the rows of all were merged before"),
               terminal);
  text += Labelled("Rows",
                   absl::StrCat(status.rows_done, " of ", status.rows,
                                status.refused == 0 ? "" : absl::StrCat(", ", status.refused, " refused")),
                   terminal);
  if (status.done > 0) {
    text += Labelled("Time",
                     absl::StrCat(Duration(status.seconds), " of work so far, ",
                                  Number(static_cast<double>(status.rows_done) / std::max(status.seconds, 1e-9), 3),
                                  " rows a second and worker",
                                  status.rows_done < status.rows
                                      ? absl::StrCat("; ", Duration(status.seconds_left()), " are left for one worker")
                                      : ""),
                     terminal);
    text += Labelled("Sums",
                     absl::StrCat("at most ", Small(status.worst_leftover_share),
                                  " of a row's move is left over; sums of batches are at most ",
                                  Small(status.worst_recovery_error), " of their values off"),
                     terminal);
    text += NotFiniteText(status.not_finite, terminal);
    text += NotesText(status.notes, terminal);
    text += Labelled("Memory", absl::StrCat(Bytes(status.peak_memory), " in a worker at most"), terminal);
  }
  if (status.attempts > 0) {
    text += Labelled("Attempts",
                     absl::StrCat(Plural(static_cast<size_t>(status.attempts), "file"), " of ",
                                  Bytes(status.attempt_bytes), ": running now, or killed"),
                     terminal);
  }
  if (!status.missing.empty() && status.done > 0) {
    std::vector<std::string> told;
    for (const int64_t shard : status.missing) {
      if (told.size() == kMostTold) break;
      told.push_back(absl::StrCat(shard));
    }
    text += Labelled("Missing",
                     absl::StrCat(absl::StrJoin(told, ", "),
                                  told.size() < status.missing.size()
                                      ? absl::StrCat(" and ", status.missing.size() - told.size(), " more")
                                      : ""),
                     terminal);
  }
  for (size_t k = 0; k < std::min(status.wrong.size(), kMostTold); ++k) {
    text += Labelled(k == 0 ? "Wrong" : "", status.wrong[k], terminal);
  }
  if (status.wrong.size() > kMostTold) {
    text += Labelled("", absl::StrCat("and ", status.wrong.size() - kMostTold, " more"), terminal);
  }
  WriteStdout(text);
  return status.wrong.empty() ? kSuccess : kDoesNotAddUp;
}

int RunJobMerge(const JobMergeArguments& arguments) {
  const JobPlan plan = LoadJobPlan(arguments.plan);
  CheckPlanned(arguments.plan, plan);
  Progress progress;
  const MergedJob merged = MergeJob(
      plan, arguments.plan, [&](int64_t done, int64_t total) { progress.Show("checking shards", done, total); });
  progress.Clear();
  if (arguments.json) {
    WriteStdout(Dump(MergedJobJson(merged), 1) + "\n");
    return kSuccess;
  }
  const Terminal terminal = StdoutTerminal();
  std::string text = Labelled("Rows", RowsText(merged), terminal);
  for (size_t k = 0; k < std::min(merged.refused.size(), kMostTold); ++k) {
    const Json& own = merged.refused[k];
    text += Labelled(k == 0 ? "Refused" : "",
                     absl::StrCat("row ", own.at("row").get<int64_t>(), ": ", own.at("reason").get<std::string>()),
                     terminal);
  }
  if (static_cast<size_t>(merged.refused_rows) > kMostTold) {
    text +=
        Labelled("", absl::StrCat("and ", merged.refused_rows - static_cast<int64_t>(kMostTold), " more"), terminal);
  }
  text += NotFiniteText(merged.not_finite(), terminal);
  text += NotesText(merged.notes, terminal);
  text += Labelled("Written", absl::StrCat(merged.path, ", ", Bytes(merged.bytes)), terminal);
  text += absl::StrCat("SHA-256    ", merged.sha256, "\n");
  WriteStdout(text);
  return kSuccess;
}

int RunJobReport(const JobReportArguments& arguments) {
  const bool page = !arguments.json || !arguments.out.empty();
  const std::string out =
      arguments.out.empty() ? absl::StrCat(ResultsFolder(arguments.plan), "/report.html") : arguments.out;
  const ReportedJob job = LoadReportedJob(arguments.plan);
  std::optional<ReportedJob> against;
  if (!arguments.against.empty()) against = LoadReportedJob(arguments.against);
  std::vector<std::string> sources;
  const auto add_sources = [&](const std::string& plan, const MergedJob& merged) {
    const std::string results = ResultsFolder(plan);
    sources.insert(sources.end(), {plan, merged.path, results + "/merged.json", results + "/_SUCCESS"});
    AddPlannedFiles(plan, LoadJobPlan(plan), &sources);
    for (const auto& shard : FindCommitted(results)) {
      for (const CommittedShard& own : shard.second) sources.insert(sources.end(), {own.path, own.receipt});
    }
  };
  add_sources(arguments.plan, job.merged);
  if (against) add_sources(arguments.against, against->merged);
  CheckOutputs({{"--out", page ? out : ""}}, sources);
  const Json report = JobReportJson(job, against ? &*against : nullptr, ThisProgram());
  const std::string html = page ? JobReportHtml(report) : "";
  if (page) WriteFileWhole(out, html);
  if (arguments.json) {
    WriteStdout(Dump(report, 1) + "\n");
    return kSuccess;
  }
  const Terminal terminal = StdoutTerminal();
  std::string text = Labelled("Rows", RowsText(job.merged), terminal);
  text += NotesText(job.merged.notes, terminal);
  text += Labelled("Written", absl::StrCat(out, ", ", Bytes(static_cast<int64_t>(html.size()))), terminal);
  WriteStdout(text);
  return kSuccess;
}

}  // namespace addend::cli
