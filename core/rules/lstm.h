// Fused rewrites of LSTMs; see Note [Fused rewrites] in fused.h.
#ifndef ADDEND_CORE_RULES_LSTM_H_
#define ADDEND_CORE_RULES_LSTM_H_

#include "core/rules/fused.h"

namespace addend {

// `steps` is the rewrite of the same operator.
Rewrite FusedPaddedLstm(RewriteFunction steps);  // lstm.input
Rewrite FusedPackedLstm(RewriteFunction steps);  // lstm.data
Rewrite FusedLstmCell(RewriteFunction steps);    // lstm_cell

}  // namespace addend

#endif  // ADDEND_CORE_RULES_LSTM_H_
