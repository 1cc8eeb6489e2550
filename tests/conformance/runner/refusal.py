"""How LibTorch refuses to compute on a device. Its words are all that answers tell of it: faces give such errors one
code with many others."""

import re

# After these every later call of the process fails with the same words.
_LOST = re.compile(
    r"CUDA error: (device-side assert triggered|an illegal memory access was encountered|unspecified launch failure|"
    r"misaligned address|an illegal instruction was encountered)"
)
_NOWHERE = re.compile(r"Could not run '[^']+' with arguments from the '(?!CPU')\w+' backend")
_NOT_OF_THIS_TYPE = re.compile(r'"\w+" not implemented for \'\w+\'')


def lost_context(answer):
    """The words of an answer that came since the context of the process's device was lost; "" for others."""
    return _words(_LOST, answer)


def no_kernel(answer):
    """The words of an answer that came since an operator has no kernel on the device; "" for others."""
    return _words(_NOWHERE, answer)


def no_kernel_of_type(answer):
    """The words of an answer that came since a kernel does not take an element type, on a CPU maybe no more than here;
    "" for others."""
    return _words(_NOT_OF_THIS_TYPE, answer)


def _words(pattern, answer):
    found = pattern.search(answer.message) if answer.code != "OK" else None
    return found.group() if found else ""
