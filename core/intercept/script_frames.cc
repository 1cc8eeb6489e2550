#include "core/intercept/script_frames.h"

#include <torch/csrc/jit/frontend/source_range.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "core/intercept/module_path.h"
#include "core/intercept/tracing_scope.h"

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

using Entries = std::vector<torch::jit::StackEntry>;

bool Same(const Entries& a, const Entries& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.range.source().get() == y.range.source().get() && x.range.start() == y.range.start() &&
           x.range.end() == y.range.end() && x.filename == y.filename;
  });
}

size_t Hash(const Entries& entries, const std::vector<std::string>& modules) {
  size_t hash = absl::HashOf(modules);
  for (const auto& entry : entries) {
    hash = absl::HashOf(hash, entry.range.source().get(), entry.range.start(), entry.range.end());
  }
  return hash;
}

// A place as the interpreter tells it: which function runs which piece of which source, innermost first, and the
// modules. What is kept keeps the sources alive, so that none is mistaken for another at the same address.
struct KnownPlace {
  Entries entries;
  std::vector<std::string> modules;
  int number = -1;  // in places
  int next = -1;    // with the same hash
};

// Takes a frame for the position of those offered from the innermost on. Returns whether to look no further.
bool Offer(const std::string& function, const std::string& file, int64_t line, Position& position) {
  if (line < 0) return false;
  // Lines inside LibTorch's own Python modules say less than the line of the model that called them.
  const bool library = absl::StrContains(file, "torch/nn/");
  if (position.file.empty() || !library) {
    position.function = function;
    position.file = file;
    position.line = line;
  }
  return !library;
}

}  // namespace

struct ScriptPlaces::State {
  std::vector<KnownPlace> known;
  absl::flat_hash_map<size_t, int> first;  // by hash, in known
  absl::flat_hash_map<const CodePlace*, int> scoped;
  std::vector<CodePlace> places;
  // Frames by the piece of source and the function that runs it. The places of a module have the frames of the modules
  // around it in common, and known places keep their sources alive.
  absl::flat_hash_map<std::tuple<const torch::jit::Source*, size_t, size_t, std::string>, SourceFrame> frames;

  const SourceFrame& FrameOf(const torch::jit::StackEntry& entry) {
    const torch::jit::SourceRange& range = entry.range;
    const auto [found, is_new] =
        frames.try_emplace({range.source().get(), range.start(), range.end(), entry.filename}, SourceFrame());
    if (is_new) found->second = MakeFrame(entry);
    return found->second;
  }
};

Position PositionAt(const CodePlace& place) {
  Position position;
  position.module_path = place.module_path;
  for (auto frame = place.frames.rbegin(); frame != place.frames.rend(); ++frame) {
    if (Offer(frame->function, frame->file, frame->line, position)) break;
  }
  if (position.function.empty() && !place.frames.empty()) position.function = place.frames.back().function;
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
  Entries entries = torch::jit::currentCallstack();  // innermost first
  if (entries.empty()) return -1;
  std::vector<std::string> modules = torch::jit::currentModuleHierarchy();
  int& first = state_->first.try_emplace(Hash(entries, modules), -1).first->second;
  for (int k = first; k >= 0; k = state_->known[k].next) {
    const KnownPlace& known = state_->known[k];
    if (known.modules == modules && Same(known.entries, entries)) return known.number;
  }
  CodePlace place;
  place.module_path = ModulePathOf(modules);
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    place.frames.push_back(state_->FrameOf(*entry));
  }
  const auto number = static_cast<int>(state_->places.size());
  state_->places.push_back(std::move(place));
  state_->known.push_back({std::move(entries), std::move(modules), number, first});
  first = static_cast<int>(state_->known.size()) - 1;
  return number;
}

Position CurrentScriptPosition() {
  if (const CodePlace* place = PlaceScope::Current(); place != nullptr) return PositionAt(*place);
  Position position;
  const Entries entries = torch::jit::currentCallstack();  // innermost first
  if (entries.empty()) return position;
  for (const auto& entry : entries) {
    // The file of the saved model is generated code; the debug records lead back to the author's line.
    const auto original = entry.range.findSourceRangeThatGenerated();
    const auto place = (original ? *original : entry.range).file_line_col();
    if (place && Offer(entry.filename, std::get<0>(*place), static_cast<int64_t>(std::get<1>(*place)), position)) break;
  }
  position.module_path = ModulePathOf(torch::jit::currentModuleHierarchy());
  return position;
}

}  // namespace addend
