// Notes of several runs: each sentence once, with how many examples it is about.
#ifndef ADDEND_CORE_EXPLAIN_NOTE_COUNTS_H_
#define ADDEND_CORE_EXPLAIN_NOTE_COUNTS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace addend {

struct CountedNote {
  std::string note;      // as it was said of `first`
  bool warning = false;  // IsWarning(): numbers may not mean what a reader takes them for
  int64_t count = 0;     // of examples whose runs said so, maybe with other numbers in the sentence
  int64_t first = 0;     // the first of them
};

class NoteCounts {
 public:
  // Further sentences are not kept: a model that says so much says nothing new in the next.
  static constexpr size_t kMost = 100;

  // Takes what was said of `count` examples, of which `first` is the first.
  void Add(const std::string& note, int64_t first, int64_t count);
  void Take(const CountedNote& note);
  void Merge(const NoteCounts& other);
  // Whether a sentence is there, maybe with other numbers in it.
  bool Has(const std::string& note) const;
  // Warnings first, then by example; sentences about the same one in the order of their words.
  const std::vector<CountedNote>& list() const { return list_; }

 private:
  std::vector<CountedNote> list_;
};

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_NOTE_COUNTS_H_
