"""`Unpack`, which says of ``**policy: Unpack[PolicyChoices]`` what keyword arguments there are."""

from typing import TYPE_CHECKING, Any

__all__ = ["Unpack"]

if TYPE_CHECKING:
    from typing_extensions import Unpack
else:
    try:
        from typing import Unpack
    except ImportError:  # before Python 3.11, where it has to be there for the one who reads the line only

        class Unpack:
            def __class_getitem__(cls, kind: Any) -> Any:
                return kind
