// Writes documents of every kind that the C interface gives into a folder; a file is named for its document.
//
// usage: write_documents FOLDER
#include <addend/addend.hpp>
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using addend::api::Attribution;
using addend::api::AuditLog;
using addend::api::Composition;
using addend::api::Context;
using addend::api::Model;
using addend::api::Program;
using addend::api::Request;
using addend::api::Results;
using addend::api::Tensor;
using addend::api::TensorFile;

constexpr char kExamples[] = "docs/examples/models/";
constexpr char kModels[] = "tests/conformance/models/";

class Folder {
 public:
  explicit Folder(std::string path) : path_(std::move(path)) {}
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream file(path_ + "/" + name, std::ios::binary);
    file << text;
    file.close();
    if (!file) throw std::runtime_error("cannot write " + name);
  }

 private:
  std::string path_;
};

Tensor SampleOf(const std::string& name) {
  return TensorFile::Read(std::string(kExamples) + name + "/sample.safetensors").tensor("input");
}
Model ExampleOf(const std::string& name) { return Model::Load(std::string(kExamples) + name + "/model.pt"); }

// An image, a table and words, with checks of every operator.
void WriteExplanations(const Folder& folder) {
  Request image;
  image.Input(SampleOf("digits")).SplitAlong({2, 3}).Baseline(0.0);
  const Results pixels = ExampleOf("digits").Decompose(image);
  folder.Write("explanation.image.json", pixels.Explain("8-3").Json());
  folder.Write("report.json", pixels.ReportJson());

  Request table;
  table.Input(SampleOf("breast_cancer")).SplitAlong({1}).Baseline(0.0).VerifyReference().Probe("aten::relu:0");
  const Context overridden = Context::Of({{"preset", "fast"}, {"nonlinearity@aten::relu", "scaling"}});
  const Results columns = ExampleOf("breast_cancer").Decompose(table, overridden);
  folder.Write("explanation.table.json", columns.Explain().Json());
  folder.Write("explanation.probe.json", columns.Explain("0,0", "aten::relu:0").Json());
  folder.Write("report.fast.json", columns.ReportJson());

  Request words;
  words.Input(SampleOf("language")).SplitAlong({1}).Baseline(0.0).Name("first");
  folder.Write("explanation.text.json", ExampleOf("language").Decompose(words).Explain().Json());

  // From no run, and from an operator that was called by name.
  const Tensor numbers = Tensor::Copy(std::vector<double>{1, -2, 3, 4}, {2, 2});
  const Composition rows = Composition::Diagonal(numbers, {0});
  folder.Write("explanation.composition.json", rows.Explain("0,1").Json());
  const Results called = addend::api::Call("aten::tanh", addend::api::Arguments().Add(rows));
  folder.Write("explanation.call.json", called.Explain("1,1").Json());
  folder.Write("report.call.json", called.ReportJson());
}

void WriteAttributions(const Folder& folder) {
  Request request;
  request.Input(SampleOf("digits")).SplitAlong({2, 3}).Baseline("blur").Target("8").Target("8-3").Operators();
  const Attribution found = ExampleOf("digits").Attribute(request);
  folder.Write("explanation.attribution.json", found.Json());
  folder.Write("explanation.target.json", found.Explain(1).Json());
  folder.Write("report.attribution.json", found.results().ReportJson());

  Request rows;
  rows.Input(SampleOf("breast_cancer")).SplitAlong({1}).Baseline(0.0).Target("0").EachExample();
  const std::string description =
      R"({"format": "addend.concepts", "version": 1, "text": "{concept}: {value}", "concepts": [)"
      R"({"name": "Tens", "code": "R1", "components": ["column 1*"], "unit": "mm"}]})";
  const addend::api::Concepts concepts = addend::api::Concepts::Read(description);
  const Attribution of_rows = ExampleOf("breast_cancer").Attribute(rows);
  folder.Write("reasons.json", of_rows.ReasonsJson(concepts));
  Request row;
  row.Input(SampleOf("breast_cancer")).SplitAlong({1}).Baseline(0.0).Target("0");
  folder.Write("interactions.json", ExampleOf("breast_cancer").InteractionsJson(row, concepts));
  folder.Write("reasons.one.json", of_rows.Explain().ReasonsJson(concepts));

  const TensorFile heads = TensorFile::Read(std::string(kModels) + "heads.safetensors");
  Request inside;
  inside.Input(heads.tensor("table")).Inside("aten::contiguous").SplitAlong({1}).Target("0,1");
  const Model model = Model::Load(std::string(kModels) + "heads.pt");
  folder.Write("explanation.inside.json", model.Attribute(inside).Json());
}

// Records of decisions, and what their verification finds: with inputs and without, and of a log that was changed.
void WriteRecords(const Folder& folder, const std::string& path) {
  const Model model = ExampleOf("breast_cancer");
  Request table;
  table.Input(SampleOf("breast_cancer"))
      .SplitAlong({1})
      .Baseline("mean:" + std::string(kExamples) + "breast_cancer/heldout.safetensors");
  Request image;
  image.Input(SampleOf("digits")).SplitAlong({2, 3}).Baseline("blur").Target("8").Target("8-3");
  const std::string log = path + "/log.tmp";
  {
    const AuditLog plain(log);
    folder.Write("decision.plain.json", plain.Append(model.Attribute(table)));
    folder.Write("decision.again.json",
                 plain.Append(model.Attribute(table), R"({"context": [1, "a"], "reasons": {"a": 1}})"));
  }
  {
    const AuditLog keeping(log, R"({"keep_inputs": true})");
    folder.Write("decision.kept.json", keeping.Append(ExampleOf("digits").Attribute(image)));
  }
  const std::string models = std::string(R"({"models": [")") + kExamples + "breast_cancer/model.pt\", \"" + kExamples +
                             "digits/model.pt\"], \"sample\": 2}";
  folder.Write("audit.json", AuditLog::Verify(log, models));
  std::ofstream(log, std::ios::app) << "something else\n";
  folder.Write("audit.changed.json", AuditLog::Verify(log, R"({"expect": ")" + std::string(64, 'a') + "\"}"));
  std::remove(log.c_str());
}

void WritePrograms(const Folder& folder) {
  const Model digits = ExampleOf("digits");
  Request request;
  request.Input(SampleOf("digits"));
  const Program program = digits.Record(request);
  std::string values = "null";
  for (size_t k = 1; k < program.num_operators(); ++k) values += ", 0.5";
  const std::string numbers = R"({"numbers": [{"name": "time", "unit": "seconds", "values": [)" + values + "]}]}";
  folder.Write("program_summary.json", program.SummaryJson());
  folder.Write("code_trace.json", program.CodeJson(numbers));
  folder.Write("graph.json", program.GraphJson(numbers));
  folder.Write("check_trace.json", digits.CheckTrace(request));
  folder.Write("requirements.json", digits.Requirements(Request()));
  folder.Write("requirements.program.json", program.Requirements(request));

  // Guards, tensors in lists, writes in place.
  const Model awkward = Model::Load(std::string(kModels) + "awkward.pt");
  Request other;
  other.Input(Tensor::Copy(std::vector<float>(12, 0.25f), {2, 6}));
  const Program guarded = awkward.Record(other);
  folder.Write("program_summary.guards.json", guarded.SummaryJson());
  folder.Write("code_trace.guards.json", guarded.CodeJson());
  folder.Write("graph.guards.json", guarded.GraphJson());
  folder.Write("check_trace.guards.json", awkward.CheckTrace(other));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  try {
    const Folder folder(argv[1]);
    WriteExplanations(folder);
    WriteAttributions(folder);
    WritePrograms(folder);
    WriteRecords(folder, argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
