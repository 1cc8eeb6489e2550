#include "core/base/host_read.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>

#include <map>
#include <utility>
#include <vector>

namespace addend {
namespace {

// This stops an item. It is no std::exception, since it is no error that anybody may catch on the way.
struct Unread {};

// One item: what it has read, f64 on the CPU, and what it waits for, f64 on its device.
struct Item {
  std::vector<at::Tensor> known;
  size_t next = 0;
  at::Tensor asked;
  std::vector<std::pair<at::Tensor, std::function<void(double)>>> later;
};

// The item that runs in this thread; null: numbers are read at once.
thread_local Item* current = nullptr;

class Running {
 public:
  explicit Running(Item* item) : outer_(current) { current = item; }
  ~Running() { current = outer_; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  Item* outer_;
};

}  // namespace

at::Tensor ReadNumbers(const at::Tensor& numbers) {
  if (current == nullptr || numbers.device().is_cpu()) {
    return numbers.detach().to(at::kCPU, at::kDouble).contiguous();
  }
  if (current->next < current->known.size()) return current->known[current->next++];
  // Who reads many would start again as often: from here on it waits.
  constexpr size_t kMostStarts = 4;
  if (current->known.size() >= kMostStarts) {
    current->known.push_back(numbers.detach().to(at::kCPU, at::kDouble).contiguous());
    ++current->next;
    return current->known.back();
  }
  current->asked = numbers.detach().to(at::kDouble);
  throw Unread();
}

at::Tensor ReadNumbers(const std::function<at::Tensor()>& made) {
  if (current == nullptr || current->next == current->known.size()) return ReadNumbers(made());
  return current->known[current->next++];
}

std::vector<double> ReadAll(const std::vector<at::Tensor>& numbers) {
  // Only numbers of one dtype stand in one tensor.
  std::map<at::ScalarType, std::vector<size_t>> places;
  for (size_t k = 0; k < numbers.size(); ++k) places[numbers[k].scalar_type()].push_back(k);
  std::vector<at::Tensor> all;
  for (const auto& [dtype, own] : places) {
    std::vector<at::Tensor> flat;
    for (const size_t k : own) flat.push_back(numbers[k].detach().reshape({}));
    all.push_back(at::stack(flat).to(at::kDouble));
  }
  std::vector<double> found(numbers.size());
  if (all.empty()) return found;
  const at::Tensor read = ReadNumbers(all.size() == 1 ? all[0] : at::cat(all)).contiguous();
  const double* number = read.data_ptr<double>();
  for (const auto& [dtype, own] : places) {
    for (const size_t k : own) found[k] = *number++;
  }
  return found;
}

double ReadNumber(const at::Tensor& number) {
  if (current == nullptr || number.device().is_cpu()) return number.item<double>();
  return *ReadNumbers(number).data_ptr<double>();
}

bool ReadEqual(const at::Tensor& a, const at::Tensor& b) {
  if (current == nullptr || a.device().is_cpu()) return a.equal(b);
  return a.sizes() == b.sizes() && (a.numel() == 0 || ReadFlag(a.eq(b).all()));
}

bool ReadSameNumbers(const at::Tensor& a, const at::Tensor& b) {
  if (ReadEqual(a, b)) return true;
  return ReadFlag(a.eq(b).logical_or_(a.ne(a).logical_and_(b.ne(b))).all());
}

at::Tensor AtHand(const at::Tensor& tensor) {
  constexpr int64_t kFew = int64_t{1} << 20;
  return tensor.device().is_cpu() || tensor.numel() > kFew ? tensor : tensor.detach().to(at::kCPU);
}

void ReadLater(const at::Tensor& number, std::function<void(double)> take) {
  if (current == nullptr || number.device().is_cpu()) return take(number.item<double>());
  current->later.emplace_back(number, std::move(take));
}

void ReadTogether(size_t count, const std::function<void(size_t)>& item) {
  if (current != nullptr) {
    for (size_t k = 0; k < count; ++k) item(k);
    return;
  }
  std::vector<Item> items(count);
  std::vector<size_t> waiting(count);
  for (size_t k = 0; k < count; ++k) waiting[k] = k;
  while (!waiting.empty()) {
    std::vector<size_t> stopped;
    std::vector<at::Tensor> asked;
    std::vector<at::Tensor> flat;
    for (const size_t k : waiting) {
      items[k].next = 0;
      items[k].later.clear();
      const Running running(&items[k]);
      try {
        item(k);
      } catch (const Unread&) {
        stopped.push_back(k);
        asked.push_back(std::move(items[k].asked));
        flat.push_back(asked.back().reshape({-1}));
      }
    }
    waiting = std::move(stopped);
    if (waiting.empty()) break;
    const at::Tensor read = at::cat(flat).to(at::kCPU);
    int64_t first = 0;
    for (size_t k = 0; k < waiting.size(); ++k) {
      items[waiting[k]].known.push_back(read.narrow(0, first, asked[k].numel()).view(asked[k].sizes()));
      first += asked[k].numel();
    }
  }
  std::vector<at::Tensor> later;
  for (const Item& item : items) {
    for (const auto& [number, take] : item.later) later.push_back(number);
  }
  const std::vector<double> read = ReadAll(later);
  auto number = read.begin();
  for (const Item& item : items) {
    for (const auto& [unread, take] : item.later) take(*number++);
  }
}

}  // namespace addend
