// The command line of Addend: what can be typed, and the one place that turns what goes wrong into a line of text.
#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/policy_keys.h"
#include "core/base/text.h"
#include "core/jobs/job_plan.h"
#include "tools/addend/commands.h"
#include "tools/addend/config.h"
#include "tools/addend/files.h"
#include "tools/addend/text.h"

namespace addend::cli {
namespace {

constexpr char kTrust[] = "A model is a program: load only what you trust.";

constexpr char kAbout[] =
    "Addend shows how much of an output of a neural network came from each part of\n"
    "its input, and proves it: the parts add up to what the model computed.";

constexpr char kDecomposeExamples[] =
    "Examples:\n"
    "  addend decompose model.pt --input row.npy --baseline mean.npy\n"
    "      A table's row against the mean row: which columns made the largest output?\n"
    "  addend decompose model.pt --input digits.safetensors:dim=2,3 --row 7 \\\n"
    "      --baseline 0 --html page.html\n"
    "      Image number 7 against a black one, as a page for a browser.\n"
    "  addend decompose model.pt --input text.safetensors:labels=words \\\n"
    "      --baseline token:0 --target 3-5 --json\n"
    "      What speaks for class 3 rather than class 5, word by word. The tensor\n"
    "      \"words\" of the same file has the word of each token.\n"
    "  addend decompose model.pt --input row.npy --inside aten::relu:dim=1 \\\n"
    "      --baseline 0\n"
    "      What each neuron behind the ReLU made of the output, not each column.\n"
    "\n"
    "Splits (SPLIT says which elements of an input are one part of it):\n"
    "  plain          not split; the same in the input and in its baseline\n"
    "  dim=1          a part for each position along dimension 1\n"
    "  dim=2,3        a part for each position along both, such as a pixel\n"
    "  labels=WHERE   a part for each number of an integer tensor; -1: of no part\n"
    "  parts=WHERE    the parts themselves, one for each index of dimension 0\n"
    "  WHERE is a tensor of the same file or another file. Without SPLIT: dim=0 for\n"
    "  vectors, dim=2,3 for four dimensions, the last one for integers, else dim=1.\n"
    "\n"
    "Files are .safetensors or .npy; FILE#NAME takes one of several tensors. The\n"
    "metadata of .safetensors may hold \"names\" of the parts and \"classes\" of the\n"
    "output (JSON lists), \"kind\" (table, image, text) and \"mask_token\".\n"
    "A .csv file has names of columns in its first line, which are the names of the\n"
    "parts. PNG and JPEG are images [1, channels, height, width] in 0..1.\n"
    "\n";

constexpr char kAttributeExamples[] =
    "Examples:\n"
    "  addend attribute model.pt --input photo.npy:dim=2,3 --baseline 0 --at logits\n"
    "      What each pixel gave to the strongest class, before the final softmax.\n"
    "  addend attribute model.pt --input text.safetensors --baseline token:0 \\\n"
    "      --target 3 --target 3-5 --nodes --out words.safetensors\n"
    "      Two numbers in one sweep, and what passed through each operator.\n"
    "  addend attribute model.pt --input row.npy --graph graph.html\n"
    "      The graph of the model, coloured by what passed through each operator.\n"
    "  addend attribute model.pt --input rows.npy --each-example --target 0 \\\n"
    "      --baseline mean:rows.npy --reasons concepts.json --json\n"
    "      Why each row scores as it does, in the words of concepts.json.\n"
    "\n"
    "Splits, files and policies: addend decompose --help. Policies that look at all\n"
    "parts together (nonlinearity=abs_affine, hybrid_affine; bias=abs, sign, norm,\n"
    "hybrid, and those with a threshold) need addend decompose.\n"
    "\n";

constexpr char kReasonsExamples[] =
    "Example:\n"
    "  addend attribute model.pt --input row.npy --baseline mean.npy --json > row.json\n"
    "  addend reasons row.json concepts.json\n"
    "      What spoke against row.npy, in the words of concepts.json (docs/reasons.md).\n";

constexpr char kInteractionsExamples[] =
    "Example:\n"
    "  addend interactions model.pt --input row.npy --baseline mean.npy --target 0 \\\n"
    "      --concepts concepts.json --html matrix.html\n"
    "      How much of what each concept gave would be gone without each other one.\n"
    "\n"
    "One run for each group and one more, in a batch where the model takes batches.\n"
    "docs/interactions.md says what the numbers mean.\n"
    "\n";

constexpr char kAuditExamples[] =
    "Examples:\n"
    "  addend attribute model.pt --input row.npy --baseline mean.npy --target 0 \\\n"
    "      --log decisions.jsonl\n"
    "      Decides, and appends a record of it.\n"
    "  addend audit verify decisions.jsonl\n"
    "      Is every record as it was written? Names those that are not.\n"
    "  addend audit verify decisions.jsonl --model model.pt --inputs rows.npy \\\n"
    "      --sample 100\n"
    "      Computes 100 of them again, drawn at random, and compares the bits.\n"
    "  addend audit show decisions.jsonl --record 17\n"
    "\n"
    "A log shows what was recorded and what can be computed again. Who holds the\n"
    "whole of it can write it anew: keep the last hash elsewhere, and give it to\n"
    "--expect. Exit code of verify: 0 if all is well, 1 if not, 2 if it cannot run.\n"
    "\n";

constexpr char kJobExamples[] =
    "Examples:\n"
    "  addend job plan model.pt --input rows.npy --baseline mean:rows.npy \\\n"
    "      --target 0 --shards 100 --out plan.json\n"
    "      Cuts the rows into shards, and tries the request on the first of them.\n"
    "  addend job run plan.json\n"
    "      Computes all shards that are missing: also after a crash.\n"
    "  seq 0 99 | xargs -P 2 -n 1 addend job run plan.json --shard\n"
    "      The same by two processes; with any engine that can start a command.\n"
    "  addend job status plan.json\n"
    "  addend job merge plan.json\n"
    "      Checks every shard by its digest, and writes one file: plan.out/merged.*\n"
    "  addend job report plan.json\n"
    "      What all rows together say, as a page for a browser: plan.out/report.html\n"
    "\n"
    "A shard is computed from the plan alone, and becomes visible as a whole, under\n"
    "the digest of its bytes. Shards may be started twice, and killed at any time.\n"
    "\n";

constexpr char kJobReport[] =
    "Examples:\n"
    "  addend job report plan.json\n"
    "      Writes plan.out/report.html: the proof, which parts matter and how their\n"
    "      contributions are spread, groups (--group of the plan), the worst rows.\n"
    "  addend job report june.json --against may.json --out drift.html\n"
    "      Also how far the contributions have moved since another job, part by part.\n"
    "\n"
    "The page is one file without anything to fetch. docs/jobs.md says what its\n"
    "numbers are.\n";

constexpr char kJobData[] =
    "--input names one .csv file; one folder, each file of which is a row, in the\n"
    "order of names (PNG, JPEG, or a tensor [1, ...]); or .npy and .safetensors\n"
    "files, one for each input of the model, whose dimension 0 counts rows. Splits\n"
    "are of a batch of rows: dim=1 is the first dimension of a row. Labels and\n"
    "baselines that are tensors are of one row.\n"
    "\n";

constexpr char kCheckExamples[] =
    "Examples:\n"
    "  addend check model.pt --input row.npy --baseline mean.npy\n"
    "  addend check model.onnx --input row.npy --expect scores.npy\n"
    "      Also whether the model gives what scores.npy holds.\n"
    "\n"
    "Exit code: 0 if every operator passes, 1 if one fails or an output is not what\n"
    "is expected, 2 if it cannot be run.\n"
    "\n";

constexpr char kTraceExamples[] =
    "Examples:\n"
    "  addend trace model.pt --input row.npy\n"
    "      Every operator under the source line that called it.\n"
    "  addend trace model.pt --input row.npy --graph html --out graph.html\n"
    "      The graph as a page for a browser.\n"
    "  addend trace model.pt --input row.npy --check --with other.npy\n"
    "      Does the recording hold for another input? Exit code 1 if it does not.\n"
    "  addend trace model.pt --input row.npy --save program\n"
    "      Keeps the run; every command takes the folder in place of the model.\n"
    "\n";

constexpr char kOpsKinds[] =
    "Kinds:\n"
    "  Linear, Affine  the operator itself on each part, its constant apart\n"
    "  Pointwise       functions of one number: slope between baseline and input\n"
    "  Bilinear        products: by half, or a coefficient before what it weighs\n"
    "  Selection       maxima: by the share of the way on which each candidate wins\n"
    "  Path            integrated along the way from baseline to input\n"
    "  Rewrite         put together from other rules\n"
    "  Opaque          steps and comparisons: nothing passes, the rest is leftover\n"
    "Operators that only show memory in another shape need no rule, and those that\n"
    "LibTorch puts together from others are taken apart.\n";

constexpr int kOptionColumn = 26;
constexpr char kOutOfMemory[] = "out of memory";
constexpr int64_t kMostThreads = 4096;

// Values that a key takes, the default first: "auto | faithful | fast".
std::string Choices(const PolicyKey& key) {
  std::vector<std::string> choices = {key.default_value};
  if (key.type == "whole number" || key.type == "number") choices.push_back("NUMBER");
  std::vector<std::string> values;
  for (const PolicyValue& value : key.values) {
    if (value.name == key.default_value) continue;
    values.push_back(value.number.empty() ? value.name : absl::StrCat(value.name, "(", value.default_number, ")"));
  }
  if (absl::StartsWith(key.type, "some of")) values = {"none", "some of " + absl::StrJoin(values, "+")};
  choices.insert(choices.end(), values.begin(), values.end());
  return absl::StrJoin(choices, " | ");
}

std::string PolicyHelp() {
  constexpr int kWidth = 52;
  std::string help = "How it is done; may be repeated. The default first:\n";
  for (const PolicyKey& key : PolicyKeys()) {
    help += Wrap(absl::StrCat(key.name, "=", Choices(key)), kWidth, 4);
    help += "  " + Wrap(key.says, kWidth - 2, 2);
  }
  constexpr char kOverride[] =
      "freeze@aten::softmax=attention sets a field for one operator, or for a module path: docs/policies.md";
  help += Wrap(kOverride, kWidth, 2);
  help.pop_back();  // the last end of line
  return help;
}

// Exactly one line, whatever the message holds.
int Fail(const std::string& message, int code = kBadInput) {
  std::string line = Clean(Shortened(message.substr(0, message.find('\n')), kMostMessage));
  // LibTorch's own words for it come from whatever operator was running.
  const bool memory = line.find("DefaultCPUAllocator: ") != std::string::npos;
  if (memory || line == kOutOfMemory) line = "out of memory; a smaller batch (--row) or fewer parts need less";
  std::fprintf(stderr, "addend: %s\n", line.empty() ? "unknown error" : line.c_str());
  return code;
}

// For options that take a whole number.
auto FromTo(int64_t least, int64_t most) {
  return [least, most](const std::string& text) -> std::string {
    int64_t number = 0;
    if (absl::SimpleAtoi(text, &number) && number >= least && number <= most) return "";
    const bool open = most == std::numeric_limits<int64_t>::max();
    return absl::StrCat("a whole number from ", least, open ? " on" : absl::StrCat(" to ", most), " is expected");
  };
}
auto FromOneTo(int64_t most) { return FromTo(1, most); }

// For options that name a file.
std::string NotEmpty(const std::string& path) { return path.empty() ? "the path of a file is expected" : ""; }

void AddModelOption(CLI::App& app, RunArguments& run) {
  app.add_option("MODEL", run.model,
                 "A TorchScript file, an exported program (.pt2), an\n"
                 "ONNX model, or a folder of addend trace --save. All\nare programs: load only what you trust.")
      ->required()
      ->option_text(" ");
}

void AddSampleOptions(CLI::App& app, RunArguments& run) {
  app.add_option("-r,--row", run.row, "The sample to take out of a batch, counted from 0")->option_text("N");
  app.add_option("--dtype", run.dtype,
                 "Computes in float64 or float32, whatever the files\nhold; float64 is more exact")
      ->check(CLI::IsMember({"float32", "float64"}))
      ->option_text("DTYPE");
  app.add_option("--device", run.device, "Where the model runs: cpu (the default), cuda, cuda:1")
      ->option_text("DEVICE");
  app.add_option("--mapping", run.mapping,
                 "What texts in columns of .csv mean: JSON with\n{TEXT: NUMBER, ...} for a column, a list of texts (0\n"
                 "or 1 for each), or null (no input)")
      ->check(NotEmpty, "", "")
      ->option_text("FILE");
  app.add_option("--channels", run.channels, "Turns PNG and JPEG into gray or rgb (default: as\nthe file has them)")
      ->check(CLI::IsMember({"gray", "rgb"}))
      ->option_text("CHANNELS");
  app.add_option("--mean", run.mean,
                 "Taken from each channel of PNG and JPEG, whose\nnumbers are in 0..1: 0.5 or 0.5,0.4,0.4")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->option_text("LIST");
  app.add_option("--std", run.std, "Each channel is then divided by it, likewise")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->option_text("LIST");
}

void AddRunOptions(CLI::App& app, RunArguments& run) {
  AddModelOption(app, run);
  app.add_option("-i,--input", run.inputs,
                 "What the model is given, and how it is split into\nparts (see below); once for each of its arguments")
      ->required()
      ->allow_extra_args(false)
      ->option_text("FILE[:SPLIT]");
  app.add_option("--inside", run.inside,
                 "Splits a tensor inside the model instead (told as\nby --at), along dimensions or by labels from a\n"
                 "file; inputs stay plain. May be repeated")
      ->allow_extra_args(false)
      ->option_text("WHERE:SPLIT");
  app.add_option(
         "-b,--baseline", run.baselines,
         "What stands for \"nothing\": a FILE, a number, or for\ntoken ids token:ID or token:mask_token; mean:FILE or\n"
         "median:FILE of a file of rows, buffer:NAME of the\nmodel, and of an image mean (of each channel) or\n"
         "blur:PIXELS; addend attribute also takes several,\nrows:FILE or nearest:COUNT:FILE (of the rows), and\n"
         "gives means. Once for each input that is split.\nContributions are measured from it (default: 0)")
      ->allow_extra_args(false)
      ->option_text("WHAT");
  app.add_flag("--verify-reference", run.request.verify_reference,
               "Also runs the plain model on the baseline, and says\nhow far the reference is from that");
  AddSampleOptions(app, run);
  app.add_option("-p,--policy", run.policy, PolicyHelp())->allow_extra_args(false)->option_text("FIELD=VALUE");
}

void AddMemory(CLI::App& command, RequestOptions& request, const std::string& help) {
  const auto set = [&request](uint64_t bytes) {
    if (bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      throw InvalidArgument("--memory is a size such as 2GiB or 500MB");
    }
    request.memory_bytes = static_cast<int64_t>(bytes);
  };
  command.add_option_function<uint64_t>("--memory", set, help)
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true))
      ->option_text("SIZE");
}

void AddTop(CLI::App& command, int64_t& top, const std::string& help) {
  command.add_option("--top", top, absl::StrCat(help, " (default: ", kShownAtFirst, ")"))->option_text("N");
}

CLI::App* AddDecompose(CLI::App& app, DecomposeArguments& arguments) {
  CLI::App* command = app.add_subcommand("decompose", "Shows how much of an output came from each part of\nthe input");
  AddRunOptions(*command, arguments.run);
  command
      ->add_option(
          "-t,--target", arguments.target,
          "The number to explain: top1 (the largest; the\ndefault), an index such as 3 or 0,3, a class name,\n"
          "or a difference such as 3-5 or German-Dutch; of a\nsoftmax probability:3, log_probability:3, entropy;\n"
          "continuation:12,55,7 (the input's last ids), or a\nsum of such targets, sum:3+5")
      ->option_text("TARGET");
  command
      ->add_option(
          "--at", arguments.at,
          "Explains an inner tensor instead of the output:\nlogits (before a softmax or sigmoid), the path of a\n"
          "module (enc@1: its second call; att:0: the first\nof its tensors), #N (operator N) or aten::NAME. May "
          "be\nrepeated: the first is shown, all go to --out")
      ->allow_extra_args(false)
      ->option_text("WHERE");
  command->add_option("--names", arguments.names, "Names of the parts: a,b,c or a file with one a line")
      ->option_text("LIST");
  command->add_option("--classes", arguments.classes, "Names of the model's outputs, likewise")->option_text("LIST");
  AddTop(*command, arguments.top, "How many contributions to show");
  AddMemory(*command, arguments.run.request,
            "What parts may take on their way through the\nmodel, such as 2GiB: they move in groups that fit\n"
            "(default: any amount)");
  command
      ->add_option_function<std::string>(
          "--direction",
          [&request = arguments.run.request](const std::string& way) { request.direction = ParseDirection(way); },
          "forward: every part through every operator;\nbackward: from the numbers that are asked for; or\n"
          "auto, whatever is faster (the default). The same\nto rounding")
      ->check(CLI::IsMember({"auto", "forward", "backward"}))
      ->option_text("WAY");
  command->add_option("--out", arguments.out, "Writes components, reference, leftover and value\nas .safetensors")
      ->check(NotEmpty, "", "")
      ->option_text("FILE");
  command->add_option("--html", arguments.html, "Writes a page for a browser, in one file")
      ->check(NotEmpty, "", "")
      ->option_text("FILE");
  command->add_option("--svg", arguments.svg, "Draws the number as a picture in SVG, for reports\nand e-mails")
      ->check(NotEmpty, "", "")
      ->option_text("FILE");
  command->add_flag("--json", arguments.json,
                    "Prints a record with all numbers, hashes and\nsettings instead of the table");
  command->footer(std::string(kDecomposeExamples) + kTrust);
  return command;
}

void AddTargets(CLI::App& command, std::vector<std::string>& targets) {
  command
      .add_option(
          "-t,--target", targets,
          "The number to explain: top1 (the largest; the\ndefault), an index such as 3 or 0,3, a class name,\n"
          "or a difference such as 3-5 or German-Dutch; of a\nsoftmax probability:3, log_probability:3, entropy;\n"
          "continuation:12,55,7 (the input's last ids), or a\nsum of such targets, sum:3+5. May be repeated")
      ->allow_extra_args(false)
      ->option_text("TARGET");
}

CLI::App* AddAttribute(CLI::App& app, AttributeArguments& arguments) {
  CLI::App* command = app.add_subcommand(
      "attribute", "The same for chosen outputs alone, at the same price\nfor ten parts and for ten thousand");
  AddRunOptions(*command, arguments.run);
  AddTargets(*command, arguments.targets);
  command
      ->add_option(
          "--at", arguments.run.request.at,
          "Explains an inner tensor instead of the output:\nlogits (before a softmax or sigmoid), the path of a\n"
          "module (enc@1: its second call; att:0: the first\nof its tensors), #N (operator N) or aten::NAME")
      ->option_text("WHERE");
  command->add_option("--names", arguments.names, "Names of the parts: a,b,c or a file with one a line")
      ->option_text("LIST");
  command->add_option("--classes", arguments.classes, "Names of the model's outputs, likewise")->option_text("LIST");
  AddTop(*command, arguments.top, "How many contributions to show");
  AddMemory(*command, arguments.run.request,
            "What the run may take beside the model, about, such\nas 2GiB: what does not fit is computed again, with\n"
            "the same bits (default: any amount)");
  command->add_flag("--each-example", arguments.run.request.each_example,
                    "The first dimension counts samples: explains the\ntarget of each of them, in one sweep");
  command
      ->add_option("--reasons", arguments.reasons,
                   "Tells the reasons instead, in order: what of the\nconcepts that a FILE describes spoke against it\n"
                   "(docs/reasons.md)")
      ->check(NotEmpty, "", "")
      ->option_text("FILE");
  command->add_option("--html", arguments.html, "Writes a page for a browser, in one file")
      ->check(NotEmpty, "", "")
      ->option_text("FILE");
  command->add_option("--svg", arguments.svg, "Draws the number as a picture in SVG, for reports\nand e-mails")
      ->check(NotEmpty, "", "")
      ->option_text("FILE");
  command->add_flag("--nodes", arguments.nodes, "Also shows how much passed through each operator");
  command
      ->add_option("--graph", arguments.graph,
                   "Writes the graph of the model as a page for a\nbrowser, coloured by what passed through each\n"
                   "operator")
      ->check(NotEmpty, "", "")
      ->option_text("FILE");
  command->add_option("--out", arguments.out, "Writes contributions of parts and of all elements\nas .safetensors")
      ->check(NotEmpty, "", "")
      ->option_text("FILE");
  command->add_option("--log", arguments.log, "Appends a record of the decision to a log; see\naddend audit --help")
      ->check(NotEmpty, "", "")
      ->option_text("LOG");
  command->add_flag("--keep-inputs", arguments.keep_inputs,
                    "The record holds the inputs themselves, not only\ntheir digest");
  command->add_flag("--json", arguments.json,
                    "Prints a record with all numbers, hashes and\nsettings instead of the table");
  command->footer(std::string(kAttributeExamples) + kTrust);
  return command;
}

CLI::App* AddReasons(CLI::App& app, ReasonsArguments& arguments) {
  CLI::App* command = app.add_subcommand("reasons", "Tells the reasons of a stored explanation, in words");
  command->add_option("EXPLANATION", arguments.explanation, "What addend attribute or decompose gave with --json")
      ->required()
      ->option_text(" ");
  command->add_option("CONCEPTS", arguments.concepts, "A description of concepts (docs/reasons.md)")
      ->required()
      ->option_text(" ");
  command->add_option("--html", arguments.html, "Writes a page for a browser, in one file")
      ->check(NotEmpty, "", "")
      ->option_text("FILE");
  command->add_flag("--json", arguments.json, "Prints a record with all numbers instead of the table");
  command->footer(kReasonsExamples);
  return command;
}

CLI::App* AddInteractions(CLI::App& app, InteractionsArguments& arguments) {
  CLI::App* command =
      app.add_subcommand("interactions", "Shows what the contributions of parts owe to each\nother, as a matrix");
  AddRunOptions(*command, arguments.run);
  command
      ->add_option("-t,--target", arguments.target,
                   "The number to explain, as for addend attribute\n(default: top1, the largest)")
      ->option_text("TARGET");
  command->add_option("--at", arguments.run.request.at, "Explains an inner tensor, as for addend attribute")
      ->option_text("WHERE");
  command
      ->add_option("--concepts", arguments.concepts,
                   "Groups of parts: a description of concepts\n(docs/reasons.md); without it each part is one")
      ->check(NotEmpty, "", "")
      ->option_text("FILE");
  command->add_option("--names", arguments.names, "Names of the parts: a,b,c or a file with one a line")
      ->option_text("LIST");
  command->add_option("--classes", arguments.classes, "Names of the model's outputs, likewise")->option_text("LIST");
  AddTop(*command, arguments.top, "How many groups and pairs to show");
  command->add_option("--html", arguments.html, "Writes a page for a browser, in one file")
      ->check(NotEmpty, "", "")
      ->option_text("FILE");
  command->add_flag("--json", arguments.json, "Prints a record with all numbers instead of the table");
  command->footer(std::string(kInteractionsExamples) + kTrust);
  return command;
}

// The command and its two parts.
struct AuditCommands {
  const CLI::App* whole = nullptr;
  const CLI::App* verify = nullptr;
};

AuditCommands AddAudit(CLI::App& app, AuditVerifyArguments& verify, AuditShowArguments& show) {
  CLI::App* command =
      app.add_subcommand("audit", "Verifies and shows a log of decisions, which\nattribute --log writes");
  command->require_subcommand(1);
  command->footer(std::string(kAuditExamples) + kTrust);
  CLI::App* first = command->add_subcommand(
      "verify", "Reads every bit, names each record that is not as it\nwas written, and computes records again");
  const auto add_log = [](CLI::App* to, std::string& log) {
    to->add_option("LOG", log, "A file that addend attribute --log wrote, or a service")->required()->option_text(" ");
  };
  add_log(first, verify.log);
  first
      ->add_option(
          "-m,--model", verify.models,
          "Computes the records of this model again: a file, or\na folder of addend trace --save. May be repeated")
      ->allow_extra_args(false)
      ->option_text("MODEL");
  first
      ->add_option("-i,--inputs", verify.inputs,
                   "Where inputs are found, by their salted digest, that\nrecords do not hold: tensors or rows of a\n"
                   ".safetensors, .npy or .csv file. May be repeated")
      ->allow_extra_args(false)
      ->option_text("FILE");
  first->add_option("--mapping", verify.mapping, "What texts in columns of .csv mean, as for addend\nattribute")
      ->option_text("FILE");
  first->add_option("--sample", verify.sample, "How many records, drawn at random (default: all)")->option_text("N");
  first->add_option("--seed", verify.seed, "Of the draw (default: another one each time; it is\nprinted)")
      ->option_text("N");
  first->add_option("--expect", verify.expect, "A hash that some record has to have: one that was\nkept elsewhere")
      ->option_text("HASH");
  first->add_flag("--json", verify.json, "Prints JSON instead of text");
  first->footer(std::string(kAuditExamples) + kTrust);
  CLI::App* second = command->add_subcommand("show", "Shows records");
  add_log(second, show.log);
  second->add_option("--record", show.record, "All of one record, by its number")->option_text("N");
  second->add_option("--last", show.last, "How many of the last ones (default: 20)")->option_text("N");
  AddTop(*second, show.top, "How many contributions of one record");
  second->add_flag("--json", show.json, "Prints the lines of the log instead");
  return {command, first};
}

// The sub-commands of job.
struct JobCommands {
  CLI::App* command;
  CLI::App* plan;
  CLI::App* run;
  CLI::App* status;
  CLI::App* merge;
  CLI::App* report;
};
struct JobArguments {
  JobPlanArguments plan;
  JobRunArguments run;
  JobStatusArguments status;
  JobMergeArguments merge;
  JobReportArguments report;
};

JobCommands AddJob(CLI::App& app, JobArguments& arguments) {
  CLI::App* command =
      app.add_subcommand("job", "Attributes all rows of a data set, in shards that any\nengine may run");
  command->require_subcommand(1);
  command->footer(std::string(kJobExamples) + kTrust);

  CLI::App* plan = command->add_subcommand("plan", "Makes the plan of a job, and tries it on some rows");
  JobPlanArguments& own = arguments.plan;
  AddRunOptions(*plan, own.run);
  AddTargets(*plan, own.targets);
  plan->add_option("--at", own.run.request.at, "Explains an inner tensor, as for addend attribute")
      ->option_text("WHERE");
  plan->add_option("--names", own.names, "Names of the parts: a list with commas, or a file")->option_text("NAMES");
  plan->add_option("--classes", own.classes, "Names of the outputs, in the same way")->option_text("NAMES");
  plan->add_option("--reasons", own.reasons,
                   "Results hold the reasons of each row, as this\ndescription tells them (docs/reasons.md)")
      ->check(NotEmpty, "", "")
      ->option_text("FILE");
  plan->add_flag("--no-contributions", own.no_contributions, "Results hold reasons only");
  plan->add_option("--format", own.format, "Of results: safetensors (default) or csv")->option_text("FORMAT");
  plan->add_option(
          "--group", own.groups,
          "Reports tell of the rows by this column of the table,\nor by this tensor of integers. May be repeated")
      ->allow_extra_args(false)
      ->option_text("COLUMN");
  plan->add_option("--shards", own.shards, "How many there are, about (default: as many as take\nten seconds each)")
      ->check(FromOneTo(std::numeric_limits<int64_t>::max()), "", "")
      ->option_text("N");
  plan->add_option("--batch", own.batch,
                   "How many rows are attributed together (default: 256).\nBits depend on it, and not on the shards")
      ->check(FromOneTo(kMostBatch), "", "")
      ->option_text("N");
  plan->add_option("--threads", own.threads, "Of each worker (default: 1). Bits depend on it")
      ->check(FromOneTo(kMostThreads), "", "")
      ->option_text("N");
  plan->add_flag("--stop-at-refusal", own.stop_at_refusal,
                 "A row that cannot be attributed ends its shard; it is\nlisted otherwise");
  plan->add_option("-o,--out", own.out, "Where the plan is written; results come beside it")
      ->required()
      ->check(NotEmpty, "", "")
      ->option_text("PLAN");
  CLI::Option* slurm = plan->add_flag("--slurm", own.slurm, "Prints a script for sbatch that runs all shards");
  plan->add_flag("--json", own.json, "Prints what the plan says, and the rows a second that\nwere measured")
      ->excludes(slurm);
  plan->footer(std::string(kJobData) + kTrust);

  const auto add_plan = [](CLI::App* to, std::string& path) {
    to->add_option("PLAN", path, "What addend job plan wrote")->required()->option_text(" ");
  };
  CLI::App* run = command->add_subcommand("run", "Computes shards, and commits each of them");
  add_plan(run, arguments.run.plan);
  run->add_option("--shard", arguments.run.shards,
                  "Which one, from 0. May be repeated (default: all that\nare missing)")
      ->allow_extra_args(false)
      ->check(FromTo(0, std::numeric_limits<int64_t>::max()), "", "")
      ->option_text("K");
  run->add_flag("--again", arguments.run.again,
                "Computes a shard that is there once more: bits are\ncompared when shards are merged");
  run->footer(std::string(kJobExamples) + kTrust);

  CLI::App* status = command->add_subcommand("status", "Shows what is done, what is missing and what is wrong");
  add_plan(status, arguments.status.plan);
  status->add_flag("--json", arguments.status.json, "Prints JSON instead of text");
  status->footer(std::string(kJobExamples) + kTrust);

  CLI::App* merge = command->add_subcommand("merge", "Checks all shards, and puts them into one file");
  add_plan(merge, arguments.merge.plan);
  merge->add_flag("--json", arguments.merge.json, "Prints JSON instead of text");
  merge->footer(std::string(kJobExamples) + kTrust);

  CLI::App* report = command->add_subcommand("report", "Shows all rows of a merged job together, as a page");
  add_plan(report, arguments.report.plan);
  report
      ->add_option("--against", arguments.report.against,
                   "Another merged job with the same parts and targets:\nalso shows how far contributions have moved")
      ->check(NotEmpty, "", "")
      ->option_text("PLAN");
  report->add_option("-o,--out", arguments.report.out, "The page (default: report.html beside the results)")
      ->check(NotEmpty, "", "")
      ->option_text("FILE");
  report->add_flag("--json", arguments.report.json,
                   "Prints what the page shows as JSON; the page is\nwritten only where --out names it");
  report->footer(kJobReport);
  return {command, plan, run, status, merge, report};
}

CLI::App* AddCheck(CLI::App& app, CheckArguments& arguments) {
  CLI::App* command =
      app.add_subcommand("check", "Checks every operator of a run, worst first; exit\ncode 1 where one fails");
  AddRunOptions(*command, arguments.run);
  command
      ->add_option(
          "--expect", arguments.expect,
          "What another runtime gave for the inputs, such as\nONNX Runtime: once for each output, in order, or\n"
          "one file whose tensors have the outputs' names.\nShows the largest differences; exit code 1 where\n"
          "one is too large")
      ->allow_extra_args(false)
      ->option_text("FILE");
  command
      ->add_option(
          "--within", arguments.within,
          "The difference from --expect that passes, relative\nto the largest number expected (default: 1e-4,\n"
          "of half types 1e-2; integers have to be equal)")
      ->option_text("NUMBER");
  command->add_flag("--all", arguments.all, "Shows all operators, not only the worst 20");
  command->add_flag("--json", arguments.json, "Prints JSON instead of the table");
  command->footer(std::string(kCheckExamples) + kTrust);
  return command;
}

CLI::App* AddTrace(CLI::App& app, TraceArguments& arguments) {
  CLI::App* command =
      app.add_subcommand("trace", "Shows what a model does: operators under source\nlines, or its graph");
  AddModelOption(*command, arguments.run);
  command->add_option("-i,--input", arguments.run.inputs, "What the model is given; once for each argument")
      ->required()
      ->allow_extra_args(false)
      ->option_text("FILE");
  AddSampleOptions(*command, arguments.run);
  command->add_flag("--names", arguments.names, "Tensors with their names");
  command->add_flag("--marks", arguments.marks, "Marks tensors that share memory, and what is\nwritten in place");
  command->add_flag("--color", arguments.color, "Colours even where the output is no terminal");
  command->add_flag("--json", arguments.json, "Prints JSON instead of text");
  command->add_option("--graph", arguments.graph, "Shows the graph instead: json, dot (Graphviz), or\nhtml (a page)")
      ->check(CLI::IsMember({"json", "dot", "html"}))
      ->option_text("FORM");
  command->add_option("--out", arguments.out, "Writes that to a file instead")
      ->check(NotEmpty, "", "")
      ->option_text("FILE");
  command->add_option("--save", arguments.save, "Keeps the recorded program in a folder")
      ->check(NotEmpty, "", "")
      ->option_text("FOLDER");
  command->add_option("--export", arguments.export_to, "Writes a TorchScript file that plain LibTorch runs")
      ->check(NotEmpty, "", "")
      ->option_text("FILE");
  command
      ->add_option("--method", arguments.methods,
                   "Runs another method than forward; several, one\nafter the other, are one program")
      ->allow_extra_args(false)
      ->option_text("NAME");
  command->add_flag("--require", arguments.require,
                    "Runs nothing; lists what the inputs and the model\nlack: inputs, modes, operators without a rule");
  command->add_flag("--check", arguments.check,
                    "Runs the model twice, and the recording without\nit; names what differs or could");
  command
      ->add_option("--with", arguments.others,
                   "A further input: --check tries it; --save and\n--export learn from its sizes. As many as "
                   "--input,\nany number of times")
      ->allow_extra_args(false)
      ->option_text("FILE");
  command->add_flag("--out-of-place", arguments.out_of_place,
                    "For --check: also replays without writing in\nplace, which shows aliases that went unseen");
  command->footer(std::string(kTraceExamples) + kTrust);
  return command;
}

CLI::App* AddOps(CLI::App& app, OpsArguments& arguments) {
  CLI::App* command = app.add_subcommand("ops", "Lists the operators that have a rule, with its kind");
  command->add_flag("--json", arguments.json, "Prints JSON instead of the list");
  command->footer(kOpsKinds);
  return command;
}

int Run(int argc, char** argv) {
  CLI::App app(kAbout, "addend");
  DecomposeArguments decompose_arguments;
  AttributeArguments attribute_arguments;
  ReasonsArguments reasons_arguments;
  InteractionsArguments interactions_arguments;
  AuditVerifyArguments audit_verify_arguments;
  AuditShowArguments audit_show_arguments;
  CheckArguments check_arguments;
  TraceArguments trace_arguments;
  OpsArguments ops_arguments;
  JobArguments job_arguments;
  app.get_formatter()->column_width(kOptionColumn);
  app.set_version_flag("--version", ConfigText,
                       "Print versions, files, threads and devices, which\nreports of problems need, and exit");
  app.require_subcommand(1);
  app.footer(std::string("Example:\n  addend decompose model.pt --input row.npy --baseline mean.npy\n\n"
                         "addend decompose --help has more of them.\n") +
             kTrust);
  const CLI::App* decompose = AddDecompose(app, decompose_arguments);
  const CLI::App* attribute = AddAttribute(app, attribute_arguments);
  const CLI::App* reasons = AddReasons(app, reasons_arguments);
  const CLI::App* interactions = AddInteractions(app, interactions_arguments);
  const AuditCommands audit = AddAudit(app, audit_verify_arguments, audit_show_arguments);
  const JobCommands job = AddJob(app, job_arguments);
  const CLI::App* check = AddCheck(app, check_arguments);
  const CLI::App* trace = AddTrace(app, trace_arguments);
  AddOps(app, ops_arguments);
  const auto chosen = [&]() -> std::string {
    std::string names;
    for (auto commands = app.get_subcommands(); !commands.empty(); commands = commands[0]->get_subcommands()) {
      names += " " + commands[0]->get_name();
    }
    return names;
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      std::ostringstream help;
      app.exit(error, help, help);
      WriteStdout(help.str());
      return kSuccess;
    }
    std::string message = error.what();
    if (chosen().empty() && argc == 1) message = "no command is given";
    if (chosen().empty() && argc > 1 && argv[1][0] != '-') message = std::string("there is no command ") + argv[1];
    return Fail(message + "; run addend" + chosen() + " --help");
  }
  if (decompose->parsed()) return RunDecompose(decompose_arguments);
  if (attribute->parsed()) return RunAttribute(attribute_arguments);
  if (reasons->parsed()) return RunReasons(reasons_arguments);
  if (interactions->parsed()) return RunInteractions(interactions_arguments);
  if (audit.whole->parsed()) {
    return audit.verify->parsed() ? RunAuditVerify(audit_verify_arguments) : RunAuditShow(audit_show_arguments);
  }
  if (job.command->parsed()) {
    if (job.plan->parsed()) return RunJobPlan(job_arguments.plan);
    if (job.run->parsed()) return RunJobRun(job_arguments.run);
    if (job.report->parsed()) return RunJobReport(job_arguments.report);
    return job.status->parsed() ? RunJobStatus(job_arguments.status) : RunJobMerge(job_arguments.merge);
  }
  if (check->parsed()) return RunCheck(check_arguments);
  if (trace->parsed()) return RunTrace(trace_arguments);
  return RunOps(ops_arguments);
}

int RunSafely(int argc, char** argv) {
  try {
    return Run(argc, argv);
  } catch (const Error& error) {
    // A tracing failure is no fault of the user's.
    return Fail(error.what(), error.code() == absl::StatusCode::kInternal ? kDoesNotAddUp : kBadInput);
  } catch (const c10::Error& error) {
    return Fail(error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    return Fail(kOutOfMemory);
  } catch (const std::exception& error) {
    return Fail(error.what());
  } catch (...) {
    return Fail("unknown error");
  }
}

}  // namespace
}  // namespace addend::cli

int main(int argc, char** argv) {
  addend::OpenStandardStreams();
  const int code = addend::cli::RunSafely(argc, argv);
  if (code == addend::cli::kBadInput) {
    // Leaves without the shutdown of libraries: that of OpenBLAS waits for ever where memory has run out.
    std::fflush(nullptr);
    std::_Exit(code);
  }
  return code;
}
