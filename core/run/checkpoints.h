// Checkpoints of a run whose memory is limited: what is kept while the model runs, and what is computed again later.
//
// Note [Stretches]
// A run without limit keeps every value and reference until the sweep back has used them. Under a limit the recorded
// calls are cut into stretches. Where one ends and the next begins lies a checkpoint: the versions of storages that
// were made before it and that the model still holds are kept, value and reference. Everything else may be dropped once
// the model has let go of it, because its call can run again on the same operands, with the same bits (activation
// checkpointing, Chen et al. 2016, arXiv:1604.06174). The sweep back takes the last stretch first: it runs the calls
// again whose results are missing, makes their nodes, and drops both when it has passed them; see stretches.h.
// A sum is linearized without its terms, and a product with weights without its result: what no node is made of is
// dropped first, and made again only for what is computed from it. Then comes what costs the least time for its size,
// with what would be made again for it alone (dynamic tensor rematerialization, Kirisame et al. 2021,
// arXiv:2006.09616). A checkpoint is set where the model holds little: between two layers, as a rule. There may
// be too many for the limit, since nobody knows how long the run will be: then those are given up that keep much and
// whose stretches are short. Plain tensors, inputs, embeddings of ids, random draws and results that a rewrite adopted
// and that are read are always kept.
#ifndef ADDEND_CORE_RUN_CHECKPOINTS_H_
#define ADDEND_CORE_RUN_CHECKPOINTS_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "core/base/policy.h"
#include "core/program/recorder.h"
#include "core/run/call_at_hand.h"
#include "core/run/freed_memory.h"
#include "core/run/storage_states.h"

namespace addend {

class Checkpoints {
 public:
  // Both must outlive the checkpoints.
  Checkpoints(Recorder* recorder, StorageStates* states) : recorder_(recorder), states_(states) {}

  // Bytes that values and references may take, about: what the model itself holds is not limited. Nothing is dropped
  // before this. Throws InvalidArgument where the policy needs the whole run: pieces of the line, residuals as
  // references, constants that are paid.
  void Limit(int64_t bytes, const Policy& policy);
  bool on() const { return limit_ > 0; }
  int64_t limit() const { return limit_; }
  bool dropped() const { return dropped_; }
  // Between two calls: notes what the model has let go of, drops what does not fit, and may set a checkpoint.
  void BetweenCalls();
  // After a traced call, which with its reference took `seconds`.
  void AfterCall(const CallAtHand& own, bool starts, double seconds);
  // Says of each kept version which call makes it again. Returns the first call of each stretch, ascending from 0; none
  // without a limit.
  std::vector<int64_t> Take();

 private:
  // A version of a storage that can be made again.
  struct Version {
    int storage = 0;
    size_t kept = 0;     // its place in StorageState::kept
    int64_t birth = 0;   // the call that made it
    int64_t death = -1;  // the first call that cannot read it; -1: the model still holds it
    int64_t bytes = 0;   // of value and reference
    double seconds = 0;  // to make it again, with what nobody else needs
    bool pinned = false;
    bool held = true;
    bool whole = false;   // its call gave all of the storage
    bool read = false;    // a later call reads it
    bool needed = false;  // a node is made of it
    bool stays = false;   // it is cast to integers, or read back from them; see read_back.h
  };
  struct Cut {
    int64_t call = 0;   // the first of its stretch
    int64_t bytes = 0;  // of what is kept for it
    int64_t made = 0;   // bytes that the stretch before it made
  };

  int64_t NextCall() const;
  std::vector<size_t>::iterator AliveIn(int storage);
  bool MayDrop(const Version& version) const;
  void Bury(size_t v);
  void Offer(size_t v);
  void DropWhatDoesNotFit();
  bool IsGoodPlace(int64_t live) const;
  void SetCheckpoint(int64_t live);
  bool GiveUpOne();
  void Pin(Version& version, bool pinned);
  bool Crosses(const Version& version) const;
  int64_t Longest() const;

  Recorder* recorder_;
  StorageStates* states_;
  int64_t limit_ = 0;
  bool dropped_ = false;
  int64_t step_ = 0;  // bytes that a stretch has at least
  int64_t held_ = 0;
  int64_t pinned_ = 0;
  int64_t open_ = 0;  // bytes that were made since the last checkpoint
  int64_t seen_calls_ = 0;
  FreedMemory freed_;
  std::vector<Version> versions_;                // in the order of their calls
  std::vector<size_t> alive_;                    // the newest version of each storage that the model holds
  std::set<std::pair<double, size_t>> offered_;  // by price: those that may be dropped
  std::vector<Cut> cuts_;
};

}  // namespace addend

#endif  // ADDEND_CORE_RUN_CHECKPOINTS_H_
