// Numbers that the host reads off tensors, all those of many items at once.
//
// Note [Host reads]
// Whoever reads a number off a tensor on a GPU waits until the GPU has done all that it was given. Nodes are made of a
// few such numbers each, so that a run of a thousand operators would wait thousands of times. Therefore items of one
// kind run together: an item that reads a number which nobody knows yet stops there, by an exception; when every item
// has stopped or ended, all those numbers are read at once, and the items that stopped start again with what they have
// read so far at hand. There are as many waits as the item that reads most has numbers, however many items there are.
// An item that reads more than four waits for the others on its own. Items are deterministic, so that the n-th number
// of one is the same each time, and change nothing that is seen outside before they end. On the CPU, where nobody
// waits, numbers are read where they are asked for.
#ifndef ADDEND_CORE_BASE_HOST_READ_H_
#define ADDEND_CORE_BASE_HOST_READ_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <vector>

namespace addend {

// The elements as f64 on the CPU, of the same shape and contiguous; integers as far as float64 holds them.
at::Tensor ReadNumbers(const at::Tensor& numbers);
// Numbers are `made`, and read as above, only where nobody knows them yet.
at::Tensor ReadNumbers(const std::function<at::Tensor()>& made);
// The one element of a tensor.
double ReadNumber(const at::Tensor& number);
inline bool ReadFlag(const at::Tensor& flag) { return ReadNumber(flag) != 0; }
// Whether there may be true elements: on a device always, where acting as if costs less than waiting to see.
inline bool MayHaveAny(const at::Tensor& flags) { return !flags.device().is_cpu() || ReadFlag(flags.any()); }
inline int64_t ReadInteger(const at::Tensor& integer) { return static_cast<int64_t>(ReadNumber(integer)); }
// Numbers that stand in tensors of one element each, of any dtypes, on one device: by one read.
std::vector<double> ReadAll(const std::vector<at::Tensor>& numbers);
// a.equal(b).
bool ReadEqual(const at::Tensor& a, const at::Tensor& b);
// a.equal(b), for which NaN is equal to itself.
bool ReadSameNumbers(const at::Tensor& a, const at::Tensor& b);

// A tensor of few numbers on the CPU, where reading them costs nothing more; others stay where they are.
at::Tensor AtHand(const at::Tensor& tensor);

// Hands the one element of a tensor to `take`: at once, or, within an item of ReadTogether(), when all items have
// ended, so that no item stops for it.
void ReadLater(const at::Tensor& number, std::function<void(double)> take);

// Runs item(0) ... item(count - 1), in this order as often as there are numbers to be read. What an item throws ends
// all. Nested calls run their items one after the other within the outer item.
void ReadTogether(size_t count, const std::function<void(size_t)>& item);

}  // namespace addend

#endif  // ADDEND_CORE_BASE_HOST_READ_H_
