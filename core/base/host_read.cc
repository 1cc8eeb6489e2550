#include "core/base/host_read.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include <utility>
#include <vector>

namespace addend {
namespace {

// What stops an item. It is no std::exception, since it is no error that anybody may catch on the way.
struct Unread {};

// One item: what it has read, each f64[n] on the CPU, and what it waits for, f64[n] on its device.
struct Item {
  std::vector<at::Tensor> known;
  size_t next = 0;
  at::Tensor asked;
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
  if (current->next < current->known.size()) return current->known[current->next++].view(numbers.sizes());
  current->asked = numbers.detach().reshape({-1}).to(at::kDouble);
  throw Unread();
}

double ReadNumber(const at::Tensor& number) {
  if (current == nullptr || number.device().is_cpu()) return number.item<double>();
  return *ReadNumbers(number).data_ptr<double>();
}

bool ReadEqual(const at::Tensor& a, const at::Tensor& b) {
  if (current == nullptr || a.device().is_cpu()) return a.equal(b);
  return a.sizes() == b.sizes() && (a.numel() == 0 || ReadFlag(a.eq(b).all()));
}

at::Tensor AtHand(const at::Tensor& tensor) {
  constexpr int64_t kFew = int64_t{1} << 20;
  return tensor.device().is_cpu() || tensor.numel() > kFew ? tensor : tensor.detach().to(at::kCPU);
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
    for (const size_t k : waiting) {
      items[k].next = 0;
      const Running running(&items[k]);
      try {
        item(k);
      } catch (const Unread&) {
        stopped.push_back(k);
        asked.push_back(std::move(items[k].asked));
      }
    }
    waiting = std::move(stopped);
    if (waiting.empty()) break;
    const at::Tensor read = at::cat(asked).to(at::kCPU);
    int64_t first = 0;
    for (size_t k = 0; k < waiting.size(); ++k) {
      items[waiting[k]].known.push_back(read.narrow(0, first, asked[k].size(0)));
      first += asked[k].size(0);
    }
  }
}

}  // namespace addend
