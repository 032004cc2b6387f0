"""The progress bar of a run."""

import math
import sys
import warnings
from typing import Any

from belated.optimizers.delays import Forecast
from belated.optimizers.values import checked


class Progress:
    """A progress bar of tqdm. It shows the best value, counts and forecasts of trials, and the remaining seconds."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._facts: dict[str, Any] = {}

    def update(self, *, done: int = 0, left: float = math.inf, **facts: Any) -> None:
        """Advance the bar by `done` trials, and show those arguments that are not None.

        `left` is the number of seconds until the timeout, which is also shown.
        """
        self._facts |= facts
        shown = {name: fact for name, fact in self._facts.items() if fact is not None}
        if left < math.inf:
            shown["left"] = f"{max(left, 0.0):.0f}s"
        # If `done` is above 0, the call of update below draws the bar.
        self._bar.set_postfix(shown, refresh=not done)
        if done:
            self._bar.update(done)

    def close(self) -> None:
        """Close the bar, and leave its last state visible."""
        self._bar.close()


def arriving_text(now: float, forecast: Forecast) -> str | None:
    """Return a forecast as a short text. Return None if the forecast is unknown or no trial is in flight."""
    if forecast.by is None or forecast.expected is None or not forecast.n_pending:
        return None
    return f"{forecast.expected:.0f} in {(forecast.by - now) / 60:.0f}min"


def progress_bar(progress: Any, total: int | None) -> Progress | None:
    """Return a progress bar. Return None if `progress` is False, or by default if there is no terminal or notebook."""
    progress = checked(progress, bool | None, "progress")
    if progress is False or (progress is None and not _is_interactive()):
        return None
    try:
        with warnings.catch_warnings():
            # In a notebook without ipywidgets, tqdm draws text and gives a warning.
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm
    except ImportError:
        if progress:
            raise ImportError("progress=True needs tqdm: pip install 'belated[progress]', or leave it out") from None
        return None
    return Progress(tqdm(total=total, unit="trial"))


def _is_interactive() -> bool:
    """Return whether this is a notebook or a terminal, checked without importing IPython."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return hasattr(shell, "kernel") or (sys.stderr is not None and sys.stderr.isatty())
