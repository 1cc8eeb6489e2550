// Programs: what a model did, to be read, kept and run again.
#include "c_api/program.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "c_api/give_text.h"
#include "c_api/options.h"
#include "c_api/run.h"
#include "c_api/warnings.h"
#include "core/intercept/tracing_scope.h"
#include "core/model/program_model.h"
#include "core/program/graph.h"
#include "core/program/graph_record.h"
#include "core/program/output_names.h"
#include "core/program/program_dtype.h"
#include "core/program/program_file.h"
#include "core/program/replay_notes.h"
#include "core/program/summary.h"
#include "core/recording/export_torchscript.h"
#include "core/recording/requirements.h"

namespace addend::c_api {
namespace {

CallNumbers::Unit UnitOf(const std::string& unit) {
  if (unit.empty()) return CallNumbers::Unit::kNone;
  if (unit == "seconds") return CallNumbers::Unit::kSeconds;
  if (unit == "bytes") return CallNumbers::Unit::kBytes;
  throw InvalidArgument(absl::StrCat("options: \"numbers\" has the unit ", unit, "; give \"\", seconds or bytes"));
}

CallNumbers NumbersOf(const Json& given) {
  constexpr char kShape[] = "options: \"numbers\" is a list of {\"name\", \"unit\", \"values\"}";
  if (!given.is_object() || !given.contains("name") || !given["name"].is_string() || !given.contains("values") ||
      !given["values"].is_array() || (given.contains("unit") && !given["unit"].is_string())) {
    throw InvalidArgument(kShape);
  }
  CallNumbers numbers;
  numbers.name = given["name"].get<std::string>();
  numbers.unit = UnitOf(given.value("unit", ""));
  for (const Json& value : given["values"]) {
    if (!value.is_number() && !value.is_null()) {
      throw InvalidArgument("options: \"values\" of \"numbers\" holds numbers, and null where there is none");
    }
    numbers.values.push_back(value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>());
  }
  return numbers;
}

std::vector<CallNumbers> ReadNumbers(JsonOptions& options) {
  const Json given = options.Read("numbers");
  std::vector<CallNumbers> numbers;
  if (given.is_null()) return numbers;
  if (!given.is_array()) throw InvalidArgument("options: \"numbers\" is a list");
  for (const Json& one : given) numbers.push_back(NumbersOf(one));
  return numbers;
}

}  // namespace

CodeTraceOptions CodeOptionsOf(const char* given) {
  CodeTraceOptions options;
  JsonOptions read(given);
  read.Read("succinct", &options.succinct);
  read.Read("color", &options.color);
  read.Read("names", &options.names);
  read.Read("marks", &options.marks);
  read.Read("include", &options.include);
  read.Read("exclude", &options.exclude);
  options.numbers = ReadNumbers(read);
  read.RequireAllRead();
  return options;
}

namespace {

// Null where the program has no such output.
const RecordedValue* PeekOutput(const addend_program* program, size_t index) noexcept {
  const ProgramBody* body = Peek(program);
  if (body == nullptr || index >= body->outputs.size()) return nullptr;
  return &body->program->values[body->outputs[index]];
}

}  // namespace

ProgramBody ProgramOf(std::shared_ptr<const RecordedProgram> program, const std::string& path) {
  ProgramBody body;
  body.replay = std::make_shared<const Replay>(program);
  for (const RecordedInput& input : program->inputs) body.input_names.push_back(input.name);
  body.output_names = OutputNames(program->output);
  ForEachNumber(program->output, [&](int value) { body.outputs.push_back(value); });
  body.path = path;
  body.program = std::move(program);
  return body;
}

extern "C" {

ADDEND_API addend_status* addend_program_save(const addend_program* program, const char* folder) noexcept {
  return Guard([&] {
    const ProgramBody& body = Get(program, "program");
    const std::string name = Text(folder, "folder");
    const TracingPause pause;
    SaveProgram(*body.program, name);
  });
}

ADDEND_API addend_status* addend_program_load(const char* folder, addend_program** out_program) noexcept {
  return Guard([&] {
    const std::string name = Text(folder, "folder");
    RequireOut(out_program, "out_program");
    RequireLibTorch();
    const TracingPause pause;
    Give(out_program, ProgramOf(std::make_shared<const RecordedProgram>(LoadProgram(name)), name));
  });
}

ADDEND_API addend_status* addend_program_export_torchscript(const addend_program* program, const char* path) noexcept {
  return Guard([&] {
    const ProgramBody& body = Get(program, "program");
    const std::string name = Text(path, "path");
    RequireLibTorch();
    const TracingPause pause;
    ExportTorchScript(*body.program, name);
  });
}

ADDEND_API addend_status* addend_program_to(const addend_program* program, int32_t dtype,
                                            addend_program** out_copy) noexcept {
  return Guard([&] {
    const ProgramBody& body = Get(program, "program");
    const at::ScalarType wanted = DtypeOf(dtype);
    RequireOut(out_copy, "out_copy");
    RequireLibTorch();
    const TracingPause pause;
    Give(out_copy, ProgramOf(std::make_shared<const RecordedProgram>(InDtype(*body.program, wanted)), body.path));
  });
}

ADDEND_API addend_status* addend_program_model(const addend_program* program, addend_model** out_model) noexcept {
  return Guard([&] {
    const ProgramBody& body = Get(program, "program");
    RequireOut(out_model, "out_model");
    const TracingPause pause;
    ModelBody made;
    made.model = FromProgram(body.program);
    made.input_names = body.input_names;
    made.path = body.path;
    made.program = body.program;
    ModelSource source;
    source.sha256 = LazyDigest::OfProgram(body.program);
    made.source = std::make_shared<const ModelSource>(std::move(source));
    Give(out_model, std::move(made));
  });
}

ADDEND_API addend_status* addend_program_replay(const addend_program* program, const addend_request* request,
                                                const char* options, addend_results** out_results) noexcept {
  return Guard([&] {
    const ProgramBody& body = Get(program, "program");
    const RequestBody& asked = Get(request, "request");
    ReplayOptions replay;
    JsonOptions read(options);
    read.Read("values", &replay.values);
    read.Read("every_value", &replay.every_value);
    read.Read("guards", &replay.guards);
    read.Read("guard_tolerance", &replay.guard_tolerance);
    read.Read("out_of_place", &replay.out_of_place);
    read.RequireAllRead();
    RequireOut(out_results, "out_results");
    RequireReadyForOne(asked);
    const WarningsToLog warnings(ContextOf(nullptr).log);
    const ReplayResult result = body.replay->Run(ExamplesOf(body.input_names, asked)[0], replay);
    ResultsBody results;
    results.entries = OutputsOf(result.output);
    for (const auto& [name, value] : result.values) {
      results.entries.push_back({name, std::nullopt, value.detach(), std::nullopt});
    }
    results.notes = NotesOnReplay(*body.program);
    Give(out_results, std::move(results));
  });
}

ADDEND_API addend_status* addend_program_requirements(const addend_context* context, const addend_program* program,
                                                      const addend_request* request,
                                                      addend_string** out_json) noexcept {
  return Guard(DetailOf(context), [&] {
    const ContextBody& own = ContextOf(context);
    const ProgramBody& body = Get(program, "program");
    const RequestBody& asked = Get(request, "request");
    RequireOut(out_json, "out_json");
    RequireLibTorch();
    RequireOneExample(asked);
    const TracingPause pause;
    const std::vector<c10::IValue> inputs = ExamplesOf(body.input_names, asked)[0];
    Give(out_json, Dump(RequirementsRecord(UnmetRequirements(*body.program, inputs, RulesOf(own)))));
  });
}

ADDEND_API size_t addend_program_num_operators(const addend_program* program) noexcept {
  const ProgramBody* body = Peek(program);
  return body == nullptr ? 0 : body->program->calls.size();
}

ADDEND_API size_t addend_program_num_values(const addend_program* program) noexcept {
  const ProgramBody* body = Peek(program);
  return body == nullptr ? 0 : body->program->values.size();
}

ADDEND_API const char* addend_program_value_name(const addend_program* program, size_t index) noexcept {
  if (index >= addend_program_num_values(program)) return nullptr;
  return Peek(program)->program->values[index].name.c_str();
}

ADDEND_API const char* addend_program_value_kind(const addend_program* program, size_t index) noexcept {
  if (index >= addend_program_num_values(program)) return nullptr;
  return ValueKindName(Peek(program)->program->values[index].kind);
}

ADDEND_API size_t addend_program_num_outputs(const addend_program* program) noexcept {
  const ProgramBody* body = Peek(program);
  return body == nullptr ? 0 : body->outputs.size();
}

ADDEND_API const char* addend_program_output_name(const addend_program* program, size_t index) noexcept {
  return PeekOutput(program, index) == nullptr ? nullptr : Peek(program)->output_names[index].c_str();
}

ADDEND_API int32_t addend_program_output_dtype(const addend_program* program, size_t index) noexcept {
  const RecordedValue* value = PeekOutput(program, index);
  return value == nullptr ? 0 : DtypeNumber(value->dtype);
}

ADDEND_API size_t addend_program_output_num_dims(const addend_program* program, size_t index) noexcept {
  const RecordedValue* value = PeekOutput(program, index);
  return value == nullptr ? 0 : value->geometry.sizes.size();
}

ADDEND_API int64_t addend_program_output_size(const addend_program* program, size_t index, size_t dim) noexcept {
  const RecordedValue* value = PeekOutput(program, index);
  return value == nullptr || dim >= value->geometry.sizes.size() ? -1 : value->geometry.sizes[dim];
}

ADDEND_API addend_status* addend_program_summary(const addend_program* program, addend_string** out_json) noexcept {
  return GiveText(program, "program", out_json, "out_json",
                  [](const auto& own) { return Dump(SummaryRecord(*own.program)); });
}

ADDEND_API addend_status* addend_program_code_text(const addend_program* program, const char* options,
                                                   addend_string** out_text) noexcept {
  return GiveText(program, "program", out_text, "out_text",
                  [&](const auto& own) { return CodeTrace(*own.program, CodeOptionsOf(options)); });
}

ADDEND_API addend_status* addend_program_code_json(const addend_program* program, const char* options,
                                                   addend_string** out_json) noexcept {
  return GiveText(program, "program", out_json, "out_json",
                  [&](const auto& own) { return Dump(CodeTraceRecord(*own.program, CodeOptionsOf(options))); });
}

ADDEND_API addend_status* addend_program_graph_json(const addend_program* program, const char* options,
                                                    addend_string** out_json) noexcept {
  return GiveText(program, "program", out_json, "out_json", [&](const auto& own) {
    JsonOptions read(options);
    const std::vector<CallNumbers> numbers = ReadNumbers(read);
    read.RequireAllRead();
    return Dump(GraphRecord(Graph(own.program), numbers));
  });
}

ADDEND_API addend_status* addend_program_graph_dot(const addend_program* program, const char* options,
                                                   addend_string** out_dot) noexcept {
  return GiveText(program, "program", out_dot, "out_dot", [&](const auto& own) {
    DotOptions dot;
    JsonOptions read(options);
    read.Read("sources", &dot.sources);
    read.Read("modules", &dot.modules);
    read.RequireAllRead();
    return GraphDot(Graph(own.program), dot);
  });
}

ADDEND_API addend_status* addend_program_graph_html(const addend_program* program, const char* options,
                                                    addend_string** out_html) noexcept {
  return GiveText(program, "program", out_html, "out_html", [&](const auto& own) {
    std::string title = "program";
    JsonOptions read(options);
    read.Read("title", &title);
    const std::vector<CallNumbers> numbers = ReadNumbers(read);
    read.RequireAllRead();
    return GraphPage(Graph(own.program), title, numbers);
  });
}

ADDEND_API void addend_program_release(addend_program* program) noexcept { Release(program); }

}  // extern "C"

}  // namespace addend::c_api
