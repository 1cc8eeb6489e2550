"""``python -m addend`` prints what reports of problems need."""

from ._config import print_config

print_config()
