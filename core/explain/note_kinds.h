// Kinds of notes, and the words by which each of them is known.
//
// Note [Kinds of notes]
// Notes are sentences, and stay such wherever they go: in reports, documents, jobs and every language. Their kind goes
// with them in the words of one table, of which whoever makes a note takes its first words (or those in its middle,
// where it begins with a name). Nobody else looks at sentences. A kind has a name too, for programs that act on it,
// which stays when words change; docs/results.md lists them.
#ifndef ADDEND_CORE_EXPLAIN_NOTE_KINDS_H_
#define ADDEND_CORE_EXPLAIN_NOTE_KINDS_H_

#include <string>
#include <vector>

namespace addend {

enum class NoteKind {
  kUntestedLibTorch,
  kTf32,
  kBfloat16,
  kPreset,
  kComputedInFloat32,
  kComputedInFloat64,
  kRoundsToHalf,
  kNoRuleAbsorbed,
  kNoRuleDerivative,
  kNoRuleLeftOver,
  kSentForward,
  kRecoveryOff,
  kTracingFailure,
  kReadsSaved,
  kReadsNumbersSame,
  kReadsNumbers,
  kConditionsSame,
  kConditions,
  kRandom,
  kUnknownSelector,
  kSelectorByParameters,
  kIdsNotFollowed,
  kStandIns,
  kInfiniteInput,
  kReadsInfinity,
  kInfiniteContributions,
  kIllConditionedElements,
  kIllConditioned,
  kMuchLeftOver,
  kNoBaselineOfIds,
  kNoBaseline,
  kSwamped,
  kInfluence,
  kMemoryLimit,
  kProbabilities,
  kAnotherContinuation,
  kSeveralBaselines,
  kOneByOne,
  kAnotherReference,
  kTakenFor,
  kReadWithin,
  kCompiledCode,
  kProgram,
  kTrainingMode,
  kUncheckedGuards,
  kTorchCompile,
  kAnotherThread,
  kTorchScriptList,
  kReturnsItsInput,
  kSharedMemory,
  kThroughSingle,
  kAnotherNumber,
  kNoChecksum,
  kUnreached,
  kInfiniteValue,
  kOther,  // any other sentence
};

// How much a reader has to know of a note: nothing (a remark), that numbers may not mean what they are taken for, or
// that they are not what they seem. The last stand before the numbers.
enum class NoteWeight { kRemark, kWarning, kSpoils };

struct WordsOfNote {
  NoteKind kind;
  const char* name;    // for programs
  const char* begins;  // the first words; empty: a name
  const char* holds;   // words behind them; empty: any
  NoteWeight weight;
};

// Every kind, in the order of NoteKind. A sentence is of the first whose words it has.
const std::vector<WordsOfNote>& NoteTable();

const WordsOfNote& WordsOf(NoteKind kind);
NoteKind KindOf(const std::string& note);

// "ill_conditioned", of each note.
std::vector<std::string> KindNames(const std::vector<std::string>& notes);

// Whether a note says that numbers are not what they seem.
bool SpoilsNumbers(const std::string& note);
// How such notes begin. The page of an explanation has the same list, for documents without warnings, which its test
// compares.
std::vector<std::string> SpoilingBeginnings();

// Whether a note says that numbers may not mean what a reader takes them for, or are not what they seem.
bool IsWarning(const std::string& note);
std::vector<std::string> WarningsAmong(const std::vector<std::string>& notes);

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_NOTE_KINDS_H_
