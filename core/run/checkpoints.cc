#include "core/run/checkpoints.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/intercept/thread_modes.h"
#include "core/intercept/tracing_scope.h"
#include "core/program/view.h"
#include "core/rules/steps.h"

namespace addend {
namespace {

// Divisor of the limit: a stretch makes at least limit / kStretches bytes.
constexpr int64_t kStretches = 8;
// Divisors of the bytes made since the last checkpoint: a new checkpoint is set where the model holds at most that part
// of them. kLittleAtLast applies once the nodes of the stretch would fill the limit.
constexpr int64_t kLittle = 16;
constexpr int64_t kLittleAtLast = 4;
// Nodes, and what lives while a stretch runs again, are this part of all that the stretch makes, as a rule.
constexpr int64_t kNodeShare = 3;

void RequireBoundable(const Policy& policy) {
  const bool paid = std::any_of(policy.overrides.begin(), policy.overrides.end(), [&](const PolicyOverride& entry) {
    return policy.For(entry.selector, entry.selector).bias != Bias::kResidual;
  });
  if (policy.segments <= 1 && policy.anchor == Anchor::kBaseline && policy.bias == Bias::kResidual && !paid) return;
  throw InvalidArgument(
      "a memory limit bounds attributions under policies with segments=1, anchor=baseline and bias=residual only; "
      "choose those, or attribute without a limit");
}

// Whether the call made the output's storage anew, or wrote it in place: then it alone can make it again.
bool Makes(const Call& call, const Operand& output) {
  if (output.written) return true;
  return std::none_of(call.operands.begin(), call.operands.end(),
                      [&](const Operand& operand) { return operand.storage == output.storage; });
}

}  // namespace

void Checkpoints::Limit(int64_t bytes, const Policy& policy) {
  RequireBoundable(policy);
  limit_ = bytes;
  step_ = std::max<int64_t>(bytes / kStretches, 1);
}

int64_t Checkpoints::NextCall() const { return static_cast<int64_t>(recorder_->traced().calls.size()); }

// The entry of the storage in `alive_`; its end: there is none.
std::vector<size_t>::iterator Checkpoints::AliveIn(int storage) {
  return std::find_if(alive_.begin(), alive_.end(), [&](size_t v) { return versions_[v].storage == storage; });
}

void Checkpoints::AfterCall(const CallAtHand& own, bool starts, double seconds) {
  const Call& call = own.call;
  const ValuesRead reads = starts ? ValuesRead() : ValuesReadBy(own.role.rule, call);
  for (const Operand& operand : call.operands) {
    const auto alive = CarriesRows(operand) && !call.is_view ? AliveIn(operand.storage) : alive_.end();
    if (alive == alive_.end()) continue;
    Version& version = versions_[*alive];
    version.read = true;
    version.needed = version.needed || reads.operands;
    version.stays = version.stays || (IsCast(call.op.schema()) && !CarriesRows(call.outputs[0]));
    if (!version.needed) seconds += version.seconds;
  }
  if (starts || call.is_view || call.resized_output || own.role.traits.Draws(call.arguments)) return;
  int64_t bytes = 0;
  const size_t first = versions_.size();
  for (const Operand& output : call.outputs) {
    if (!CarriesRows(output) || !Makes(call, output)) continue;
    const StorageState& state = states_->At(output.storage);
    const bool known = std::any_of(versions_.begin() + static_cast<int64_t>(first), versions_.end(),
                                   [&](const Version& v) { return v.storage == output.storage; });
    if (known || state.kept.empty() || state.kept.back().version != output.version) continue;
    const StorageInfo& info = states_->Info(output.storage);
    Version version;
    version.storage = output.storage;
    version.kept = state.kept.size() - 1;
    version.birth = call.index;
    version.bytes = 2 * info.numel * static_cast<int64_t>(c10::elementSize(info.dtype));
    version.seconds = seconds;
    version.whole = CoversWhole(output, info);
    version.needed = reads.outputs;
    version.stays = call.made != nullptr && IsCast(call.made->op.schema());
    bytes += version.bytes;
    versions_.push_back(version);
  }
  for (size_t v = first; v < versions_.size(); ++v) {
    // Written in place: the version before is of no use to the model any more.
    const auto before = AliveIn(versions_[v].storage);
    if (before != alive_.end()) {
      versions_[*before].death = NextCall() + 1;  // this call, which is not written down yet, reads it
      Offer(*before);
      *before = v;
    } else {
      alive_.push_back(v);
    }
  }
  held_ += bytes;
  open_ += bytes;
}

void Checkpoints::BetweenCalls() {
  if (NextCall() == seen_calls_) return;
  seen_calls_ = NextCall();
  int64_t live = 0;
  for (size_t k = 0; k < alive_.size();) {
    const Version& version = versions_[alive_[k]];
    const StorageState& state = states_->At(version.storage);
    // One of those who hold the storage is the version itself.
    const int64_t own = version.held && state.newest_is_live ? 1 : 0;
    if (recorder_->UseCount(version.storage) > own) {
      live += version.bytes;
      ++k;
      continue;
    }
    const size_t dead = alive_[k];
    alive_[k] = alive_.back();
    alive_.pop_back();
    Bury(dead);
  }
  if (IsGoodPlace(live)) SetCheckpoint(live);
  DropWhatDoesNotFit();
}

// The model has let go of a storage: nobody writes its reference any more.
void Checkpoints::Bury(size_t v) {
  Version& version = versions_[v];
  version.death = NextCall();
  states_->Of(version.storage).reference = at::Tensor();
  Offer(v);
}

// True if a version may be dropped. Numbers that a rewrite adopted cannot be made again, so versions of its calls stay
// unless nothing reads them.
bool Checkpoints::MayDrop(const Version& version) const {
  if (version.stays) return false;
  return recorder_->traced().calls[version.birth].adopted == 0 || !version.read;
}

void Checkpoints::Offer(size_t v) {
  const Version& version = versions_[v];
  if (!version.held || version.pinned || version.death < 0) return;
  const double price = version.needed ? version.seconds / static_cast<double>(std::max<int64_t>(version.bytes, 1)) : 0;
  offered_.emplace(price, v);
}

void Checkpoints::DropWhatDoesNotFit() {
  const int64_t allowed = limit_ - Longest() / kNodeShare;
  if (held_ <= allowed || offered_.empty()) return;
  const TracingPause pause;
  const NormalMode normal;
  while (held_ > allowed && !offered_.empty()) {
    Version& version = versions_[offered_.begin()->second];
    offered_.erase(offered_.begin());
    if (version.birth >= NextCall() || !MayDrop(version)) continue;
    states_->Of(version.storage).kept[version.kept].Drop(version.whole);
    version.held = false;
    dropped_ = true;
    held_ -= version.bytes;
    freed_.Add(version.bytes, limit_);
  }
}

bool Checkpoints::IsGoodPlace(int64_t live) const {
  return open_ >= step_ && live <= open_ / (open_ / kNodeShare >= limit_ ? kLittleAtLast : kLittle);
}

void Checkpoints::SetCheckpoint(int64_t live) {
  cuts_.push_back({NextCall(), live, open_});
  for (const size_t v : alive_) Pin(versions_[v], true);
  open_ = 0;
  while (GiveUpOne()) {
  }
}

void Checkpoints::Pin(Version& version, bool pinned) {
  if (version.pinned == pinned) return;
  version.pinned = pinned;
  pinned_ += pinned ? version.bytes : -version.bytes;
}

bool Checkpoints::Crosses(const Version& version) const {
  // The first checkpoint after its birth.
  const auto cut = std::upper_bound(cuts_.begin(), cuts_.end(), version.birth,
                                    [](int64_t call, const Cut& other) { return call < other.call; });
  return cut != cuts_.end() && (version.death < 0 || version.death > cut->call);
}

// Few checkpoints take little and make long stretches, whose nodes take much. Together they are least where the
// checkpoints take as much as the nodes of the longest stretch. A join that makes no stretch longer than the longest is
// a gain; longer ones only help once all stretches can be twice as long.
bool Checkpoints::GiveUpOne() {
  const int64_t longest = Longest();
  const int64_t nodes = longest / kNodeShare;
  if (cuts_.size() <= 1 || pinned_ + nodes <= limit_) return false;
  // Join a stretch only with the next one that is complete; what follows the last checkpoint is not known yet.
  const auto joined = [&](size_t k) { return cuts_[k].made + cuts_[k + 1].made; };
  const auto price = [&](size_t k) {
    return static_cast<double>(joined(k)) / static_cast<double>(std::max<int64_t>(cuts_[k].bytes, 1));
  };
  size_t least = 0;
  for (size_t k = 1; k + 1 < cuts_.size(); ++k) least = price(k) < price(least) ? k : least;
  if (joined(least) > longest && pinned_ <= 2 * nodes) return false;
  cuts_[least + 1].made += cuts_[least].made;
  cuts_.erase(cuts_.begin() + static_cast<int64_t>(least));
  for (size_t v = 0; v < versions_.size(); ++v) {
    if (!versions_[v].pinned || Crosses(versions_[v])) continue;
    Pin(versions_[v], false);
    Offer(v);
  }
  return true;
}

int64_t Checkpoints::Longest() const {
  int64_t longest = open_;
  for (const Cut& cut : cuts_) longest = std::max(longest, cut.made);
  return longest;
}

std::vector<int64_t> Checkpoints::Take() {
  if (!on()) return {};
  for (const Version& version : versions_) {
    if (version.pinned || version.death < 0 || !MayDrop(version)) continue;
    states_->Of(version.storage).kept[version.kept].made_by = version.birth;
  }
  std::vector<int64_t> firsts = {0};
  for (const Cut& cut : cuts_) firsts.push_back(cut.call);
  return firsts;
}

}  // namespace addend
