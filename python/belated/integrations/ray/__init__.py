"""belated on Ray: an executor for runs, and a searcher for Tune. Tune is imported only when the searcher is used."""

from typing import TYPE_CHECKING, Any

from belated.integrations.ray.tasks import RayExecutor, executor

if TYPE_CHECKING:
    from belated.integrations.ray.search import BelatedSearch

__all__ = ["BelatedSearch", "RayExecutor", "executor"]


def __getattr__(name: str) -> Any:
    if name == "BelatedSearch":
        from belated.integrations.ray.search import BelatedSearch

        return BelatedSearch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
