// The sub-commands: what the user typed, as text, and what runs it.
#ifndef ADDEND_TOOLS_ADDEND_COMMANDS_H_
#define ADDEND_TOOLS_ADDEND_COMMANDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/document/shown_at_first.h"
#include "core/explain/request_options.h"

namespace addend::cli {

// Exit codes of the program.
inline constexpr int kSuccess = 0;
inline constexpr int kDoesNotAddUp = 1;  // an operator failed its check
inline constexpr int kBadInput = 2;      // whatever else went wrong

// A model and what it is run on.
struct RunArguments {
  std::string model;
  std::vector<std::string> inputs;     // FILE[#NAME][:SPLIT]
  std::vector<std::string> inside;     // SELECTOR:SPLIT, of tensors inside the model
  std::vector<std::string> baselines;  // FILE[#NAME], number, token:ID or token:KEY, or a word of baselines.h
  RequestOptions request;
  std::vector<std::string> policy;  // FIELD=VALUE
  std::optional<int64_t> row;
  std::string dtype;           // "float32", "float64" or empty: as the files have it; float32 for .csv, PNG and JPEG
  std::string device = "cpu";  // where the model runs: "cuda", "cuda:1"
  std::string mapping;         // a file that says what texts in columns of .csv mean
  std::string channels;        // of PNG and JPEG: "gray", "rgb" or empty: as the file has them
  std::vector<double> mean;    // taken from each channel of PNG and JPEG
  std::vector<double> std;     // each channel is then divided by it
  bool whole = false;          // no input is split into parts
};

struct DecomposeArguments {
  RunArguments run;
  std::string target = "top1";
  std::vector<std::string> at;
  std::string names;    // a file, or a list with commas
  std::string classes;  // the same
  int64_t top = kShownAtFirst;
  std::string out;
  std::string html;
  std::string svg;
  bool json = false;
};

struct AttributeArguments {
  RunArguments run;
  std::vector<std::string> targets;  // empty: top1
  std::string names;                 // as above
  std::string classes;               // the same
  int64_t top = kShownAtFirst;
  bool nodes = false;
  std::string graph;  // a page
  std::string out;
  std::string reasons;  // a description of concepts
  std::string html;
  std::string svg;
  std::string log;  // of decisions
  bool keep_inputs = false;
  bool json = false;
};

struct ReasonsArguments {
  std::string explanation;
  std::string concepts;
  std::string html;
  bool json = false;
};

struct InteractionsArguments {
  RunArguments run;
  std::string target = "top1";
  std::string concepts;  // a description of groups; empty: each part is one
  std::string names;     // as above
  std::string classes;   // the same
  int64_t top = kShownAtFirst;
  std::string html;
  bool json = false;
};

struct AuditVerifyArguments {
  std::string log;
  std::vector<std::string> models;
  std::vector<std::string> inputs;
  std::string mapping;  // of columns of .csv; may be empty
  std::optional<int64_t> sample;
  std::optional<uint64_t> seed;
  std::string expect;
  bool json = false;
};

struct AuditShowArguments {
  std::string log;
  std::optional<int64_t> record;
  int64_t last = 20;
  int64_t top = kShownAtFirst;
  bool json = false;
};

struct JobPlanArguments {
  RunArguments run;
  std::vector<std::string> targets;  // empty: top1
  std::string names;                 // as above
  std::string classes;               // the same
  std::string reasons;               // a description of concepts
  bool no_contributions = false;
  std::string format = "safetensors";
  std::vector<std::string> groups;
  int64_t shards = 0;  // 0: of about ten seconds each
  int64_t batch = 256;
  int64_t threads = 1;
  bool stop_at_refusal = false;
  std::string out;
  bool slurm = false;
  bool json = false;
};

struct JobRunArguments {
  std::string plan;
  std::vector<int64_t> shards;  // empty: all that are missing
  bool again = false;
};

struct JobStatusArguments {
  std::string plan;
  bool json = false;
};

struct JobMergeArguments {
  std::string plan;
  bool json = false;
};

struct JobReportArguments {
  std::string plan;
  std::string against;  // another plan; empty: none
  std::string out;      // empty: beside the merged rows
  bool json = false;
};

struct CheckArguments {
  RunArguments run;
  std::vector<std::string> expect;  // FILE[#NAME], of outputs that another runtime gave
  std::optional<double> within;     // the relative difference from them that passes
  bool all = false;
  bool json = false;
};

struct TraceArguments {
  TraceArguments() { run.whole = true; }

  RunArguments run;
  bool names = false;
  bool marks = false;
  bool color = false;
  bool json = false;
  std::string graph;  // "json", "dot", "html" or empty: the code trace
  std::string out;
  std::string save;
  std::string export_to;             // a TorchScript file
  std::vector<std::string> methods;  // empty: forward
  bool require = false;
  bool check = false;
  bool out_of_place = false;
  std::vector<std::string> others;  // further inputs for the check, FILE[#NAME]
};

struct OpsArguments {
  bool json = false;
};

// Each returns the exit code. What is wrong with the arguments or files is thrown, mostly as addend::Error.
int RunDecompose(const DecomposeArguments& arguments);
int RunAttribute(const AttributeArguments& arguments);
int RunReasons(const ReasonsArguments& arguments);
int RunInteractions(const InteractionsArguments& arguments);
int RunAuditVerify(const AuditVerifyArguments& arguments);
int RunAuditShow(const AuditShowArguments& arguments);
int RunJobPlan(const JobPlanArguments& arguments);
int RunJobRun(const JobRunArguments& arguments);
int RunJobStatus(const JobStatusArguments& arguments);
int RunJobMerge(const JobMergeArguments& arguments);
int RunJobReport(const JobReportArguments& arguments);
int RunCheck(const CheckArguments& arguments);
int RunTrace(const TraceArguments& arguments);
int RunOps(const OpsArguments& arguments);

}  // namespace addend::cli

#endif  // ADDEND_TOOLS_ADDEND_COMMANDS_H_
