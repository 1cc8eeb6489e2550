#include "core/explain/note_counts.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/ascii.h"
#include "core/explain/notes.h"

namespace addend {
namespace {

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

// A sentence without its numbers ("6.7e+06"), by which sentences are alike. Digits of names, of operators in their
// order
// (#3) and of lines belong to the words.
std::string WithoutNumbers(const std::string& note) {
  std::string words;
  for (size_t k = 0; k < note.size();) {
    const char before = k == 0 ? ' ' : note[k - 1];
    const bool begins = before == ' ' || before == '(' || before == '[' || before == '-' || before == ',';
    if (!IsDigit(note[k]) || !begins) {
      words += note[k++];
      continue;
    }
    const auto digits = [&] {
      while (k < note.size() && IsDigit(note[k])) ++k;
    };
    digits();
    if (k + 1 < note.size() && note[k] == '.' && IsDigit(note[k + 1])) {
      ++k;
      digits();
    }
    if (k + 2 < note.size() && note[k] == 'e' && (note[k + 1] == '+' || note[k + 1] == '-') && IsDigit(note[k + 2])) {
      k += 2;
      digits();
    }
  }
  return words;
}

auto Order(const CountedNote& own) { return std::make_tuple(!own.warning, own.first, own.note); }

// Finds the note with the same sentence, maybe with other numbers.
template <typename List>
auto FindIn(List& list, const std::string& note) {
  return std::find_if(list.begin(), list.end(), [words = WithoutNumbers(note)](const CountedNote& own) {
    return WithoutNumbers(own.note) == words;
  });
}

}  // namespace

void NoteCounts::Take(const CountedNote& note) {
  const auto same = FindIn(list_, note.note);
  if (same == list_.end()) {
    list_.push_back(note);
  } else {
    const int64_t count = same->count + note.count;
    if (Order(note) < Order(*same)) *same = note;
    same->count = count;
  }
  std::sort(list_.begin(), list_.end(), [](const CountedNote& a, const CountedNote& b) { return Order(a) < Order(b); });
  if (list_.size() > kMost) list_.pop_back();
}

void NoteCounts::Add(const std::string& note, int64_t first, int64_t count) {
  Take({note, IsWarning(note), count, first});
}

void NoteCounts::Merge(const NoteCounts& other) {
  for (const CountedNote& note : other.list_) Take(note);
}

bool NoteCounts::Has(const std::string& note) const { return FindIn(list_, note) != list_.end(); }

}  // namespace addend
