"""Losses, as the operators that they consist of. SPEC.md#losses."""

from activation import clamp_max
from arithmetic import add, div, mul, neg, sub
from composition import is_composition
from indexing import gather
from reduction import mean, square, sum_of
from registry import call, operator
from tensor import Tensor


def reduced(policy, loss, reduction):
    """0: none, 1: mean, 2: sum."""
    return loss if reduction == 0 else mean(policy, loss) if reduction == 1 else sum_of(policy, loss)


@operator("aten::mse_loss")
def mse_loss(policy, x, target, reduction=1):
    return reduced(policy, square(policy, sub(policy, x, target)), reduction)


@operator("aten::l1_loss")
def l1_loss(policy, x, target, reduction=1):
    return reduced(policy, call(policy, "aten::abs", sub(policy, x, target)), reduction)


def bent(policy, x, target, reduction, beta, scale):
    """scale (m^2 / 2 + beta (|d| - m)) with m = min(|d|, beta)."""
    apart = call(policy, "aten::abs", sub(policy, x, target))
    near = clamp_max(policy, apart, beta)
    far = mul(policy, sub(policy, apart, near), beta * scale)
    return reduced(policy, add(policy, mul(policy, square(policy, near), scale / 2), far), reduction)


@operator("aten::huber_loss")
def huber_loss(policy, x, target, reduction=1, delta=1.0):
    return bent(policy, x, target, reduction, delta, 1)


@operator("aten::smooth_l1_loss")
def smooth_l1_loss(policy, x, target, reduction=1, beta=1.0):
    return bent(policy, x, target, reduction, beta, 1 / beta)


@operator("aten::binary_cross_entropy_with_logits")
def bce_with_logits(policy, x, target, weight=None, pos_weight=None, reduction=1):
    surprise = neg(policy, call(policy, "aten::log_sigmoid", x))
    loss = add(policy, mul(policy, target.map(lambda t: 1 - t), x), surprise)
    return reduced(policy, loss, reduction)


@operator("aten::soft_margin_loss")
def soft_margin_loss(policy, x, target, reduction=1):
    """log(1 + exp(-y x)), each step an operator."""
    grown = add(policy, call(policy, "aten::exp", mul(policy, neg(policy, x), target)), 1.0)
    return reduced(policy, call(policy, "aten::log", grown), reduction)


@operator("aten::nll_loss")
def nll_loss(policy, x, target, weight=None, reduction=1, ignore_index=-100):
    taken = gather(policy, x, 1, target.reshape(target.shape + (1,)))
    return reduced(policy, neg(policy, call(policy, "aten::squeeze.dim", taken, 1)), reduction)


@operator("aten::cross_entropy_loss")
def cross_entropy_loss(policy, x, target, weight=None, reduction=1, ignore_index=-100, label_smoothing=0.0):
    return nll_loss(policy, call(policy, "aten::log_softmax.int", x, 1), target, None, reduction)


@operator("aten::kl_div")
def kl_div(policy, x, target, reduction=1, log_target=False):
    """target (log target - x) of log-probabilities x."""
    constant = target.map(lambda t: call(policy, "aten::log", Tensor.scalar(t)).data[0] * t if t > 0 else 0.0)
    return reduced(policy, sub(policy, constant, mul(policy, x, target)), reduction)
