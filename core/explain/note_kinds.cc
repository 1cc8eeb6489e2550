#include "core/explain/note_kinds.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "absl/strings/match.h"
#include "core/program/differentiation.h"

namespace addend {

const std::vector<WordsOfNote>& NoteTable() {
  constexpr NoteWeight kRemark = NoteWeight::kRemark;
  constexpr NoteWeight kWarning = NoteWeight::kWarning;
  constexpr NoteWeight kSpoils = NoteWeight::kSpoils;
  constexpr const char* kReads = "the model reads numbers that depend on the input";
  constexpr const char* kConditions = "conditions or indices depend on the input; ";
  constexpr const char* kSame = "on the baseline they are the same: ";
  constexpr const char* kCancel = "ill-conditioned: ";
  constexpr const char* kAssumed = "no baseline was given: ";
  static const auto& table = *new std::vector<WordsOfNote>{
      {NoteKind::kUntestedLibTorch, "untested_libtorch", "LibTorch ", " computes, and this library is for LibTorch ",
       kWarning},
      {NoteKind::kTf32, "tf32", "the model multiplies in TF32: ", "", kWarning},
      {NoteKind::kBfloat16, "bfloat16", "the model may multiply in bfloat16: ", "", kWarning},
      {NoteKind::kPreset, "preset", "preset auto: ", "", kRemark},
      {NoteKind::kComputedInFloat32, "computed_in_float32", "computed in float32 ", "", kRemark},
      {NoteKind::kComputedInFloat64, "computed_in_float64", "computed in float64 ", "", kRemark},
      {NoteKind::kRoundsToHalf, "rounds_to_half", "operators round to a half type", "", kRemark},
      {NoteKind::kNoRuleAbsorbed, "no_rule_absorbed", "no rule, absorbed into the leftover: ", "", kWarning},
      {NoteKind::kNoRuleDerivative, "no_rule_derivative", "no rule, linearized through the operator's derivative: ", "",
       kRemark},
      {NoteKind::kNoRuleLeftOver, "no_rule_left_over", "no rule and no derivative, all of it is leftover: ", "",
       kWarning},
      {NoteKind::kSentForward, "sent_forward",
       "components that were found backward did not come to what their sum became", "", kRemark},
      {NoteKind::kRecoveryOff, "recovery_off", "recovery is off: ", "", kSpoils},
      {NoteKind::kTracingFailure, "tracing_failure", "tracing failure", "", kSpoils},
      {NoteKind::kReadsSaved, "reads_saved", kReadsSaved, "", kSpoils},
      {NoteKind::kReadsNumbersSame, "reads_numbers_same", kReads, kSame, kRemark},
      {NoteKind::kReadsNumbers, "reads_numbers", kReads, "", kWarning},
      {NoteKind::kConditionsSame, "conditions_same", kConditions, kSame, kRemark},
      {NoteKind::kConditions, "conditions", kConditions, "", kWarning},
      {NoteKind::kRandom, "random_numbers", "random numbers are drawn by ", "", kWarning},
      {NoteKind::kUnknownSelector, "unknown_selector", "the policy names ", "", kWarning},
      {NoteKind::kSelectorByParameters, "selector_by_parameters", "the model does not tell which operators ", "",
       kWarning},
      {NoteKind::kIdsNotFollowed, "ids_not_followed", "ids are used in ways in which no component follows: ", "",
       kWarning},
      {NoteKind::kStandIns, "not_finite_on_baseline",
       "not finite on the baseline or on the way from it, linearized at the value: ", "", kWarning},
      {NoteKind::kInfiniteInput, "infinite_input", "an input holds NaN or infinity, first at [", "", kWarning},
      {NoteKind::kReadsInfinity, "reads_infinity", "reads NaN or infinity where the reference is finite, ", "",
       kWarning},
      {NoteKind::kInfiniteContributions, "infinite_contributions", "contributions to ",
       " are NaN or infinite, because the run met such numbers", kWarning},
      {NoteKind::kIllConditionedElements, "ill_conditioned_elements", kCancel, ", element by element,", kWarning},
      {NoteKind::kIllConditioned, "ill_conditioned", kCancel, "", kWarning},
      {NoteKind::kMuchLeftOver, "much_left_over", "much is left over: ", "", kWarning},
      // There is no zero of ids.
      {NoteKind::kNoBaselineOfIds, "no_baseline_of_ids", kAssumed, "token 0 for ", kWarning},
      {NoteKind::kNoBaseline, "no_baseline", kAssumed, "", kRemark},
      {NoteKind::kSwamped, "swamped", "in ", " parts are lost in the rounding of a value of ", kWarning},
      {NoteKind::kInfluence, "influence", "the examples influence each other: ", "", kWarning},
      {NoteKind::kMemoryLimit, "memory_limit", "the memory limit was not kept: ", "", kRemark},
      {NoteKind::kProbabilities, "probabilities", "the numbers that target ", "", kWarning},
      {NoteKind::kAnotherContinuation, "another_continuation", "no input ends with the ids of ", "", kWarning},
      {NoteKind::kSeveralBaselines, "several_baselines", "contributions, reference and leftover are means over ", "",
       kRemark},
      {NoteKind::kOneByOne, "one_by_one", "the model does not take several examples at once (", "", kRemark},
      {NoteKind::kAnotherReference, "another_reference",
       "the reference is not what the model gives on the baseline: ", "", kWarning},
      {NoteKind::kTakenFor, "taken_for", "the model does not say which tensor ", "", kWarning},
      {NoteKind::kReadWithin, "read_within", "what ",
       " returned is also read within it: the parts begin there too, at ", kWarning},
      {NoteKind::kCompiledCode, "compiled_code", "the file also holds code", "", kRemark},
      {NoteKind::kProgram, "program_of_another_libtorch", "the model is a program; ", "", kRemark},
      {NoteKind::kTrainingMode, "training_mode", "the model was exported in training mode: ", "", kWarning},
      {NoteKind::kUncheckedGuards, "unchecked_guards", "the exporter's guards that are not checked: ", "", kWarning},
      {NoteKind::kTorchCompile, "torch_compile", "torch.compile wraps ", "", kRemark},
      {NoteKind::kAnotherThread, "another_thread", "the model gave work to another thread, ", "", kWarning},
      {NoteKind::kTorchScriptList, "torchscript_list", "the TorchScript module ",
       " takes a list of a tensor's elements, ", kWarning},
      {NoteKind::kReturnsItsInput, "returns_its_input", "",
       " returns its own input, and it is not known who reads it from there: ", kWarning},
      {NoteKind::kSharedMemory, "shared_memory", "", " share memory, and the model writes ", kWarning},
      {NoteKind::kThroughSingle, "through_single_precision", "",
       " is in double precision, but went through single precision ", kRemark},
      {NoteKind::kAnotherNumber, "another_number", "column \"", ", of which ", kWarning},
      {NoteKind::kNoChecksum, "no_checksum", "", " no checksum, so that damage there is not seen", kWarning},
      {NoteKind::kUnreached, "unreached", "",
       " does not depend on the split inputs through operators that tracing sees", kWarning},
      {NoteKind::kInfiniteValue, "infinite_value", "", " NaN or infinite where ", kWarning},
      {NoteKind::kOther, "other", "", "", kWarning},
  };
  return table;
}

const WordsOfNote& WordsOf(NoteKind kind) { return NoteTable()[static_cast<size_t>(kind)]; }

NoteKind KindOf(const std::string& note) {
  const std::vector<WordsOfNote>& table = NoteTable();
  return std::find_if(table.begin(), table.end(),
                      [&](const WordsOfNote& own) {
                        return absl::StartsWith(note, own.begins) && absl::StrContains(note, own.holds);
                      })
      ->kind;
}

std::vector<std::string> KindNames(const std::vector<std::string>& notes) {
  std::vector<std::string> names;
  for (const std::string& note : notes) names.emplace_back(WordsOf(KindOf(note)).name);
  return names;
}

bool SpoilsNumbers(const std::string& note) { return WordsOf(KindOf(note)).weight == NoteWeight::kSpoils; }

std::vector<std::string> SpoilingBeginnings() {
  std::vector<std::string> beginnings;
  for (const WordsOfNote& own : NoteTable()) {
    if (own.weight == NoteWeight::kSpoils) beginnings.emplace_back(own.begins);
  }
  return beginnings;
}

bool IsWarning(const std::string& note) { return WordsOf(KindOf(note)).weight != NoteWeight::kRemark; }

std::vector<std::string> WarningsAmong(const std::vector<std::string>& notes) {
  std::vector<std::string> warnings;
  std::copy_if(notes.begin(), notes.end(), std::back_inserter(warnings), IsWarning);
  return warnings;
}

}  // namespace addend
