// Reads JSON front to back into typed values, without keeping a document.
//
// The JSON of an exported program is most of a file without weights, and a document in memory takes many times its
// text. Writers also put bare NaN and Infinity into it, which strict parsers refuse. Everything else is strict: UTF-8,
// no comments, no key twice among those that are read, nothing after the end.
#ifndef ADDEND_CORE_EXPORTED_JSON_READER_H_
#define ADDEND_CORE_EXPORTED_JSON_READER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/weights/memory_budget.h"

namespace addend::exported {

using weights::MemoryBudget;

class JsonReader {
 public:
  enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject };

  // `where` begins every message: "model.pt2: models/model.json".
  JsonReader(absl::string_view text, std::string where, MemoryBudget* budget);
  JsonReader(const JsonReader&) = delete;
  JsonReader& operator=(const JsonReader&) = delete;

  // Kind of the next value. Each function below reads it, and throws InvalidArgument if it is of another kind.
  Kind Next();
  void Null();
  bool Bool();
  int64_t Integer();
  // A number, or one of "NaN", "Infinity" and "-Infinity", quoted or not.
  double Float();
  std::string String();
  // Any value, whatever it holds.
  void Skip();
  // The value of a field that is not known. Refuses one that says something: only null, false, 0, "", [] and {} mean
  // the same to a reader that knows the field and to one that does not.
  void SkipUnknown(const std::string& key);

  // Calls `element` at each element of a list; `element` reads it.
  template <typename Function>
  void Array(Function element) {
    Open('[');
    for (int64_t index = 0; More(']', index == 0); ++index) {
      path_.back().index = index;
      element();
    }
    Close();
  }

  // Calls `member` with each key of an object; `member` reads its value. No key may occur twice.
  template <typename Function>
  void Object(Function member) {
    std::set<std::string> seen;
    uint64_t taken = 0;
    Members([&](const std::string& key) {
      budget_->Take(kKeyCost + key.size());
      taken += kKeyCost + key.size();
      if (!seen.insert(key).second) FailTwice(key);
      member(key);
    });
    budget_->GiveBackTo(budget_->left() + taken);
  }

  // Reads an object with exactly one key of several, such as the schema's unions: `member` reads its value.
  template <typename Function>
  void Union(Function member) {
    int64_t count = 0;
    Members([&](const std::string& key) {
      if (++count > 1) FailUnion();
      member(key);
    });
    if (count == 0) FailUnion();
  }

  // Throws unless everything was read.
  void End();

  // Throws InvalidArgument: where, the place within the document, what.
  [[noreturn]] void Fail(const std::string& what) const;
  // The current place: "models/model.json: /graph_module/graph/nodes/3".
  std::string Place() const;

  MemoryBudget* budget() const { return budget_; }

 private:
  // A list or object that is open, and what is read of it.
  struct Step {
    std::string key;
    int64_t index = -1;  // of a list
  };

  static constexpr uint64_t kKeyCost = 96;

  template <typename Function>
  void Members(Function member) {
    Open('{');
    for (bool first = true; More('}', first); first = false) {
      const std::string key = Key();
      path_.back().key = key;
      member(key);
    }
    Close();
  }

  void SkipValue();
  void Open(char bracket);
  bool More(char bracket, bool first);
  void Close();
  std::string Key();
  [[noreturn]] void FailTwice(const std::string& key) const;
  [[noreturn]] void FailUnion() const;
  void Space();
  bool Word(absl::string_view word);
  void Expect(absl::string_view word, const char* what);
  absl::string_view Number();
  void Escape(std::string* text);
  uint32_t Hexadecimal();
  void Unicode(std::string* text);

  const char* at_;
  const char* begin_;
  const char* end_;
  std::string where_;
  MemoryBudget* budget_;
  std::vector<Step> path_;
};

}  // namespace addend::exported

#endif  // ADDEND_CORE_EXPORTED_JSON_READER_H_
