"""Arrays with shapes in their types: jaxtyping for editors and type checkers."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jax import Array
from jax.sharding import Mesh, NamedSharding
from jax.typing import ArrayLike, DTypeLike

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int, PRNGKeyArray
else:

    class Float:
        """`Float[Array, "n d"]` is an array here; that it has a floating dtype and two axes is what an editor shows."""

        def __class_getitem__(cls, item: Any) -> Any:
            """Return the type of the array, without its shape."""
            return item[0]

    Bool = Int = Float
    PRNGKeyArray = Array

FeatureMap = Callable[[Any], Array]
"""Points (..., dim) in, features (..., num_features) out: a PyTree of `features`, or a function."""

Sharding = Mesh | NamedSharding
"""The devices that share the rows."""

__all__ = [
    "Array",
    "ArrayLike",
    "Bool",
    "DTypeLike",
    "FeatureMap",
    "Float",
    "Int",
    "PRNGKeyArray",
    "Sharding",
]
