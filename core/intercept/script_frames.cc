#include "core/intercept/script_frames.h"

#include <torch/csrc/jit/frontend/source_range.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "core/intercept/module_path.h"

namespace addend {
namespace {

SourceFrame MakeFrame(const torch::jit::StackEntry& entry) {
  SourceFrame frame;
  frame.function = entry.filename;
  // The file of the saved model is generated code; the debug records lead back to the author's line.
  const auto original = entry.range.findSourceRangeThatGenerated();
  const torch::jit::SourceRange& range = original ? *original : entry.range;
  const auto place = range.file_line_col();
  if (place) {
    frame.file = std::get<0>(*place);
    frame.line = static_cast<int64_t>(std::get<1>(*place));
  }
  if (range.source() == nullptr) return frame;
  const auto& source = *range.source();
  const size_t line = source.lineno_for_offset(range.start());
  const std::string text = source.get_line(line).str();
  const size_t first = std::min(text.find_first_not_of(" \t"), text.size());
  const size_t last = text.find_last_not_of(" \t\r\n");
  frame.text = last == std::string::npos ? "" : text.substr(first, last + 1 - first);
  const auto start = static_cast<int64_t>(range.start() - source.offset_for_line(line));
  frame.column = start - static_cast<int64_t>(first);
  frame.length =
      std::min<int64_t>(static_cast<int64_t>(range.size()), static_cast<int64_t>(frame.text.size()) - frame.column);
  if (frame.column < 0 || frame.length < 0) {
    frame.column = -1;
    frame.length = 0;
  }
  return frame;
}

// A frame as the interpreter tells it: which function runs which piece of which source.
struct FrameKey {
  const torch::jit::Source* source;
  size_t start;
  size_t end;
  std::string function;

  bool operator==(const FrameKey& other) const {
    return source == other.source && start == other.start && end == other.end && function == other.function;
  }
  template <typename H>
  friend H AbslHashValue(H h, const FrameKey& key) {
    return H::combine(std::move(h), key.source, key.start, key.end, key.function);
  }
};

using PlaceKey = std::pair<std::vector<FrameKey>, std::vector<std::string>>;

}  // namespace

struct ScriptPlaces::State {
  absl::flat_hash_map<PlaceKey, int> numbers;
  // Sources stay alive, so that none is mistaken for another at the same address.
  std::vector<std::vector<torch::jit::StackEntry>> held;
  absl::flat_hash_map<const CodePlace*, int> scoped;
  std::vector<CodePlace> places;
};

Position PositionAt(const CodePlace& place) {
  Position position;
  position.module_path = place.module_path;
  for (auto frame = place.frames.rbegin(); frame != place.frames.rend(); ++frame) {
    if (frame->line < 0) continue;
    // Lines inside LibTorch's own Python modules say less than the line of the model that called them.
    const bool library = absl::StrContains(frame->file, "torch/nn/");
    if (position.file.empty() || !library) {
      position.function = frame->function;
      position.file = frame->file;
      position.line = frame->line;
    }
    if (!library) break;
  }
  return position;
}

namespace {

const CodePlace*& CurrentPlace() {
  thread_local const CodePlace* place = nullptr;
  return place;
}

}  // namespace

PlaceScope::PlaceScope(const CodePlace* place) : before_(CurrentPlace()) { CurrentPlace() = place; }
PlaceScope::~PlaceScope() { CurrentPlace() = before_; }
const CodePlace* PlaceScope::Current() { return CurrentPlace(); }

ScriptPlaces::ScriptPlaces() : state_(std::make_unique<State>()) {}
ScriptPlaces::~ScriptPlaces() = default;

const std::vector<CodePlace>& ScriptPlaces::places() const { return state_->places; }

int ScriptPlaces::Current() {
  if (const CodePlace* place = PlaceScope::Current(); place != nullptr) {
    const auto [found, is_new] = state_->scoped.try_emplace(place, static_cast<int>(state_->places.size()));
    // Addresses are used again: what was there before may be another program's.
    if (is_new || !(state_->places[found->second] == *place)) {
      found->second = static_cast<int>(state_->places.size());
      state_->places.push_back(*place);
    }
    return found->second;
  }
  std::vector<torch::jit::StackEntry> stack = torch::jit::currentCallstack();  // innermost first
  if (stack.empty()) return -1;
  PlaceKey key;
  key.first.reserve(stack.size());
  for (const auto& entry : stack) {
    key.first.push_back({entry.range.source().get(), entry.range.start(), entry.range.end(), entry.filename});
  }
  key.second = torch::jit::currentModuleHierarchy();
  const auto [found, is_new] = state_->numbers.try_emplace(std::move(key), static_cast<int>(state_->places.size()));
  if (is_new) {
    CodePlace place;
    place.module_path = ModulePathOf(found->first.second);
    for (auto entry = stack.rbegin(); entry != stack.rend(); ++entry) place.frames.push_back(MakeFrame(*entry));
    state_->places.push_back(std::move(place));
    state_->held.push_back(std::move(stack));
  }
  return found->second;
}

}  // namespace addend
