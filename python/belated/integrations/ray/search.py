"""`BelatedSearch`: belated's optimizers as a search algorithm of Ray Tune."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ray.tune.result import DEFAULT_METRIC
from ray.tune.search import Searcher

from belated._core import AlreadyObserved, BelatedError, HorizonReached, InvalidSetting, InvalidSpace
from belated.integrations.arguments import ADVICE, DIRECTIONS, check_metric, check_optimizer
from belated.integrations.ray.checkpoint import DamagedFile, SavedSearch, TuneTrial, tune_trials
from belated.integrations.ray.results import Steps, declared_value, duration_of
from belated.integrations.ray.space import TuneSpace, searched_part, space_and_mode
from belated.optimizers.bayes import BayesOpt
from belated.optimizers.curve import Curve, check_curve
from belated.optimizers.optimizer import Optimizer
from belated.optimizers.trial import Trial
from belated.run.arguments import count
from belated.short_repr import short_repr
from belated.space.arguments import finite
from belated.study.definition import definition_of, space_as_data, space_from
from belated.warn import logger, warn

LOGGER = logger()


class BelatedSearch(Searcher):  # type: ignore[misc]
    """A search algorithm for Ray Tune: ``tune.TuneConfig(search_alg=BelatedSearch())``.

    Suggestions take running trials into account as pending trials, so many trials may run at a time.

    Parameters
    ----------
    space : Space or mapping, optional
        Parameter's name → dimension of belated, shorthand for a dimension, or domain of Tune. Dicts may be nested: the
        parameter ``"optim/lr"`` is ``config["optim"]["lr"]``. Default None: Tune's ``param_space``, whose constants are
        not searched.
    metric : str, optional
        The result to optimise. Without a curve, the last value of a trial is used. Default None: the metric of Tune's
        configuration.
    mode : {"max", "min"}, optional
        The direction of the optimisation. Default None: the mode of Tune's configuration.
    optimizer : Optimizer or callable, optional
        An optimizer of belated, which has its own space; or an optimizer's class or another callable that returns an
        optimizer: ``optimizer(space, direction=direction, seed=seed)``, with ``curve=curve`` if a curve is given.
        Default None: `belated.BayesOpt`.
    points_to_evaluate : list of dict, optional
        Configs to try first.
    seed : int, optional
        The seed of the optimizer, unless an optimizer is given. Default None: a random seed.
    curve : Curve, optional
        The learning curve of each trial. Each result is then a report, and its step is ``training_iteration``. Default
        None: the curve of the optimizer.

    Attributes
    ----------
    optimizer_ : Optimizer
        The optimizer that chooses the points. Reading it raises InvalidSetting until the space and mode are known.

    Raises
    ------
    InvalidSetting
        There are several metrics or modes; the optimizer has a context, a fidelity or candidates; or two arguments
        exclude each other.
    InvalidSpace
        The space cannot be searched: it contains ``tune.grid_search``, ``tune.sample_from`` or ``tune.randn``.

    Notes
    -----
    Tune saves the searcher and Tune's table of trials in separate files, and ``Tuner.restore`` restores both. Either
    file may be newer. The searcher therefore also reads Tune's table, and adds the trials that are only in the table.
    If a trial has ended according to the table, the searcher takes its result from the table. If a suggested trial is
    missing from the table, its point is suggested again for the next trial.

    A trial fails if its results do not contain a finite number for the metric. A trial that ends without any result is
    abandoned. If a trial is run again, the new value replaces the earlier value. If a curve is declared, a trial that
    Tune stops before the last step is stopped and does not have a value. A trial whose function ends is observed with
    the value that the curve declares.

    ``ConcurrencyLimiter`` and ``max_concurrent_trials`` set how many trials run at a time. This searcher keeps the
    limit itself, so ``batch=True`` has no effect.

    Examples
    --------
    >>> from belated.integrations.ray import BelatedSearch
    >>> search = BelatedSearch({"optim": {"lr": (1e-4, 1e-1)}}, metric="loss", mode="min", seed=0)
    >>> config = search.suggest("a")
    >>> list(config["optim"])
    ['lr']
    >>> search.on_trial_complete("a", {"loss": 0.25})
    >>> search.optimizer_.best_value_
    0.25
    """

    _metric: Any
    _mode: Any

    # The state is saved as text and not as a pickle.
    CKPT_FILE_TMPL = "searcher-state-{}.json"

    def __init__(
        self,
        space: Any = None,
        *,
        metric: str | None = None,
        mode: str | None = None,
        optimizer: Optimizer | Callable[..., Optimizer] | None = None,
        points_to_evaluate: Sequence[Mapping[str, Any]] | None = None,
        seed: int | None = None,
        curve: Curve | None = None,
    ) -> None:
        check_curve(curve)
        check_metric(metric, mode)
        super().__init__(metric=metric, mode=mode)
        self._seed, self._curve, self._steps = seed, curve, Steps()
        self._points = [] if points_to_evaluate is None else list(points_to_evaluate)
        self._make: Optimizer | Callable[..., Optimizer] = BayesOpt if optimizer is None else optimizer
        self._space: TuneSpace | None = None if space is None else TuneSpace(space)
        # Whether the space comes from Tune's configuration.
        self._is_from_config = False
        self._optimizer: Optimizer | None = None
        # Data of Tune's trials by id: numbers of the optimizer's trials, the running trials, and last finite values.
        self._trials: dict[str, int] = {}
        self._running: set[str] = set()
        self._latest: dict[str, float] = {}
        # Suggested trials that are missing from Tune's table after a restore.
        self._unstarted: list[int] = []
        self._max_concurrent: int | None = None
        # The error of a failed restore.
        self._failure: Exception | None = None
        # The warnings given so far: False stands for a missing metric, True for a value that was not a finite number.
        self._warned: set[bool] = set()
        if isinstance(self._make, Optimizer):
            if (space, seed, curve) != (None, None, None):
                raise InvalidSetting("optimizer has its own space, seed and curve: leave space, seed and curve out")
            self._space, self._mode = space_and_mode(self._make, self._mode)
        elif not callable(self._make):
            raise InvalidSetting(f"optimizer={short_repr(optimizer)} is not usable: {ADVICE}, or an optimizer")
        if self._space is not None and self._mode is not None:
            self._set_up()

    @property
    def optimizer_(self) -> Optimizer:
        """The optimizer that chooses the points."""
        return self._chooser()[0]

    # Methods that Tune calls.

    def set_search_properties(self, metric: str | None, mode: str | None, config: dict[str, Any], **spec: Any) -> bool:
        """Take the metric and the mode from Tune's configuration, and the space if this searcher lacks one.

        Return False if this searcher and the configuration both have a space; Tune then raises an error.
        """
        check_metric(metric, mode)
        for name, given, own in (("metric", metric, self._metric), ("mode", mode, self._mode)):
            if given is not None and own is not None and given != own:
                raise InvalidSetting(f"{name}={given!r} in Tune's configuration, and {own!r} in the searcher")
        if self._mode is None and mode is None:
            raise InvalidSetting("mode is missing: pass metric= and mode='max' or 'min' to TuneConfig or BelatedSearch")
        found = searched_part(config)
        if self._space is None:
            if not found:
                raise InvalidSpace("param_space has only constants: write tune.uniform(low, high), or another domain")
            self._space, self._is_from_config = TuneSpace(found), True
        elif found and not (
            self._is_from_config and space_as_data(TuneSpace(found).space) == space_as_data(self._space.space)
        ):
            return False
        self._metric, self._mode = self._metric or metric, self._mode or mode
        if self._optimizer is None:
            self._set_up()
        return True

    def set_max_concurrency(self, max_concurrent: int) -> bool:
        """Run at most this many trials at a time. Return True, because this searcher keeps the limit itself.

        Tune's own limiter drops the results of trials that the limiter does not know, which may exist after a restore.
        """
        self._max_concurrent = count("max_concurrent", max_concurrent, 1)
        return True

    def suggest(self, trial_id: str) -> Any:
        """Return the config of a trial, or None while the maximum number of trials runs.

        Raises
        ------
        InvalidSetting
            The space, the metric or the mode is missing, or the search could not be restored.
        """
        optimizer, space = self._ready()
        if trial_id not in self._trials:
            if self._max_concurrent is not None and len(self._running) >= self._max_concurrent:
                return None
            try:
                number = self._unstarted.pop(0) if self._unstarted else optimizer.suggest().number
            except HorizonReached:
                return Searcher.FINISHED
            self._trials[trial_id] = number
            self._running.add(trial_id)
        return space.config(Trial(optimizer, self._trials[trial_id]).params)

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Store the last value of the metric of a running trial, and report it as a step of the curve."""
        number = self._number(trial_id, result)
        if number is not None:
            self._steps.report(self.optimizer_, number, result, self._metric)
        value = finite(result.get(self._metric))
        if value is not None:
            self._latest[trial_id] = value

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Report the outcome of a trial to the optimizer, at any time."""
        number = self._number(trial_id, result or {})
        if number is None:
            LOGGER.warning("trial %s of Tune is unknown; its result is not used", trial_id)
            return
        self._running.discard(trial_id)
        self._report(trial_id, number, result or {}, error)

    def add_evaluated_point(
        self,
        parameters: Mapping[str, Any],
        value: float | None,
        error: bool = False,
        pruned: bool = False,
        intermediate_values: Sequence[float] | None = None,
    ) -> None:
        """Add an earlier trial: its config, nested or flattened, and its value.

        Parameters
        ----------
        parameters : mapping
            The config; constants in it are ignored.
        value : float or None
            The metric's value, or None if it is missing.
        error : bool, default False
            Whether the trial failed.
        pruned : bool, default False
            Whether the trial was stopped early. The value of a stopped trial is used like the value of a trial of this
            search.
        intermediate_values : list of float, optional
            Not used.
        """
        optimizer, space = self._ready()
        trial = optimizer.add(space.params(parameters), None if error else value)
        if error:
            trial.fail(error="the trial failed in Tune")
        elif value is None:
            trial.abandon()

    def save(self, checkpoint_path: str) -> None:
        """Write the search to a file, as text.

        Raises
        ------
        InvalidSetting
            The space, the metric or the mode is missing.
        """
        Path(checkpoint_path).write_text(self._saved().text(), encoding="utf-8")

    def restore(self, checkpoint_path: str) -> None:
        """Continue the search that is saved in a file; the arguments of this searcher do not change.

        Raises
        ------
        InvalidSetting
            The file does not belong to a BelatedSearch with these arguments, or this searcher has trials that are not
            in the file.
        """
        self._restore(checkpoint_path, None)

    def restore_from_dir(self, checkpoint_dir: str) -> None:
        """Continue the newest search that is saved in an experiment's folder; also read Tune's table of trials.

        Damaged files, which Tune may leave if it is killed, are skipped. If all files are damaged, the search continues
        from the table, which has the trials but not the fitted model.
        """
        paths = sorted(Path(checkpoint_dir).glob(self.CKPT_FILE_TMPL.format("*")), reverse=True)
        try:
            table = tune_trials(checkpoint_dir)
            for path in paths:
                try:
                    return self._restore(str(path), table)
                except DamagedFile as error:
                    warn(f"{error}; an earlier file, or Tune's table of trials, is used")
            if table is None or self._optimizer is None:
                raise InvalidSetting(
                    f"{checkpoint_dir} has no undamaged file of a search: give Tuner.restore the param_space, so "
                    "that the search can be made from Tune's table of trials"
                )
            self._reconcile(table)
        except Exception as error:
            # If the error were raised here, Tune would only log the error and restart the experiment.
            self._failure = error
            raise

    # Helpers of the methods above.

    def _set_up(self) -> None:
        """Make the optimizer once the space and the mode are known."""
        self._metric = self._metric or DEFAULT_METRIC
        self._optimizer = self._new_optimizer(None)

    def _new_optimizer(self, seed: int | None) -> Optimizer:
        """Return the optimizer. Enqueue its first points, unless `seed`, the seed of a saved search, is given."""
        assert self._space is not None and self._mode is not None
        space, direction = self._space.space, DIRECTIONS[self._mode]
        if not isinstance(self._make, Optimizer):
            declared = {} if self._curve is None else {"curve": self._curve}
            made = self._make(space, direction=direction, seed=self._seed if seed is None else seed, **declared)
        elif seed is None:
            made = self._make
        else:
            arguments = self._make.get_params(deep=False)
            if self._make.seed is None:
                arguments["seed"] = seed
            made = type(self._make)(**arguments)
        check_optimizer(made, space, direction, ADVICE, users="trials of Tune")
        if self._points and seed is None:
            made.enqueue([self._space.params(point) for point in self._points])
        return made

    def _ready(self) -> tuple[Optimizer, TuneSpace]:
        """Return the optimizer and its space; raise InvalidSetting if one is missing or does not fit Tune."""
        if self._failure is not None:
            raise InvalidSetting(
                f"the search could not be restored: {self._failure}; nothing is suggested, because the "
                "experiment would begin anew"
            ) from self._failure
        return self._chooser()

    def _chooser(self) -> tuple[Optimizer, TuneSpace]:
        """Return the optimizer and its space; raise InvalidSetting if one is missing."""
        if self._optimizer is None or self._space is None:
            raise InvalidSetting(
                "space, metric or mode is missing: pass them to BelatedSearch, or param_space to Tuner and metric and "
                "mode to TuneConfig (without a param_space Tune does not pass metric and mode on)"
            )
        return self._optimizer, self._space

    def _number(self, trial_id: str, result: Mapping[str, Any]) -> int | None:
        """Return the number of a trial of Tune. If the trial was restarted under a new id, find it by its config."""
        if trial_id not in self._trials and self._optimizer is not None and self._space is not None:
            prefix = "config/"
            config = {name.removeprefix(prefix): value for name, value in result.items() if name.startswith(prefix)}
            params = self._space.params(config)
            trials = [(earlier, Trial(self._optimizer, number)) for earlier, number in self._trials.items() if params]
            same = [earlier for earlier, t in trials if t.state in ("pending", "failed") and t.params == params]
            ended = [earlier for earlier in same if earlier not in self._running]
            # If several trials with these params are running, it is unknown which trial was restarted.
            for earlier in ended[:1] or same * (len(same) == 1):
                self._trials[trial_id] = self._trials.pop(earlier)
                if earlier in self._running:
                    self._running.remove(earlier)
                    self._running.add(trial_id)
        return self._trials.get(trial_id)

    def _report(self, trial_id: str, number: int, result: Mapping[str, Any], failed: bool) -> None:
        optimizer, _ = self._ready()
        reported = result.get(self._metric, self._latest.pop(trial_id, None))
        attrs = {"tune_trial": trial_id}
        value = None if failed else finite(reported)
        ended_early = self._steps.report(optimizer, number, result, self._metric)
        if value is not None and not ended_early:
            value, duration = declared_value(optimizer, number, value), duration_of(result)
            optimizer.observe(number, value, duration=duration, attrs=attrs, amend=True)
            return
        # An earlier value is kept.
        with suppress(AlreadyObserved):
            if value is not None:
                optimizer.stop(number)
                return
            if failed:
                problem = "the trial failed in Tune"
            elif not result.keys() - {"trial_id"}:
                optimizer.abandon(number)
                return
            else:
                is_there = self._metric in result
                problem = f"the metric {self._metric!r} " + (
                    f"is {short_repr(reported)}, not a finite number" if is_there else "is not among its results"
                )
                if is_there not in self._warned:
                    self._warned.add(is_there)
                    found = sorted(result)
                    warn(f"trial {trial_id} of Tune counts as failed: {problem} {found}; further ones do not warn")
            optimizer.fail(number, error=problem, attrs=attrs)

    # Saving and restoring.

    def _saved(self) -> SavedSearch:
        optimizer, _ = self._ready()
        definition, events = definition_of(optimizer, complete=False), optimizer._log.events(0)
        return SavedSearch(self._metric, self._mode, definition, events, dict(self._trials))

    def _restore(self, path: str, table: list[TuneTrial] | None) -> None:
        """Continue a saved search, and reconcile it with Tune's table of trials. On an error, change nothing."""
        saved = SavedSearch.read(path)
        before = self.__dict__.copy()
        try:
            if self._space is None:
                # Tune passes param_space to this searcher only if the user passes it to Tuner.restore again.
                self._space, self._is_from_config = TuneSpace(space_from(saved.definition["problem"]["space"])), True
            self._metric, self._mode = self._metric or saved.metric, self._mode or saved.mode
            if self._optimizer is None:
                self._set_up()
            own_events = self._saved().events
            elsewhere = set(self.optimizer_._numbers("pending")).difference(self._trials.values(), self._unstarted)
            self._optimizer = self._new_optimizer(saved.definition["seed"])
            different = saved.differences(self._saved())
            if different:
                raise InvalidSetting(
                    f"{path} has another search: {'; '.join(different)}: restore it into a BelatedSearch with the same "
                    "arguments"
                )
            if not saved.begins_with(own_events):
                raise InvalidSetting("this searcher already has trials or points: restore into a new BelatedSearch")
            try:
                self._optimizer._log.extend(saved.events[self._optimizer._log.n_events() :])
            except BelatedError as error:
                raise InvalidSetting(f"{path} has an event that cannot have happened: {error}") from error
            self._trials, self._latest, pending = dict(saved.trials), {}, set(self._optimizer._numbers("pending"))
            self._running = {trial_id for trial_id, number in self._trials.items() if number in pending}
            self._unstarted = sorted(pending.difference(self._trials.values(), elsewhere))
            if table is not None:
                self._reconcile(table)
        except BaseException:
            self.__dict__.update(before)
            raise

    def _from_queue(self, params: dict[str, Any], queue: list[dict[str, Any]]) -> int | None:
        """Return the number of a trial that the next point of the queue starts at these params, or None.

        `queue` has the given values of the enqueued points, by flat name. A partial point may be completed by other
        values than in the session that was killed; its trial is then abandoned.
        """
        optimizer, space = self._ready()
        values = space.space.flat(params)
        if not queue or any(name not in values or values[name] != value for name, value in queue[0].items()):
            return None
        queue.pop(0)
        trial = optimizer.suggest()
        if trial.params == params:
            return trial.number
        trial.abandon()
        return None

    def _reconcile(self, table: list[TuneTrial]) -> None:
        """Add the trials of Tune's table that this search does not have, and update the trials that it has."""
        optimizer, space = self._ready()
        ids = {row.id for row in table}
        # With restart_errored, Tune restarts a failed trial under another id and forgets the failed trial.
        failed = set(optimizer._numbers("failed"))
        restarted = [each for each, number in self._trials.items() if each not in ids and number in failed]
        unstarted = sorted([*self._unstarted, *map(self._trials.pop, self._running - ids)])
        self._running = set()
        # The enqueued points that were not suggested yet.
        queue = [space.space.part_at(place) for place, _ in optimizer._log.queued()]
        for row in table:
            number = self._trials.get(row.id)
            if number is None:
                params = space.params(*row.configs)
                try:
                    # A session may have been killed before it saved the search. This row may then have the point of a
                    # trial that is missing from the table.
                    at_point = [trial for trial in unstarted if Trial(optimizer, trial).params == params]
                    again = [each for each in restarted if Trial(optimizer, self._trials[each]).params == params]
                    if again:
                        restarted.remove(again[0])
                        number = self._trials.pop(again[0])
                    elif at_point:
                        number = at_point[0]
                        unstarted.remove(number)
                    else:
                        number = self._from_queue(params, queue)
                        if number is None:
                            number = optimizer.add(params, attrs={"tune_trial": row.id}).number
                except BelatedError as error:
                    warn(f"trial {row.id} of Tune cannot be added to the search: {error}")
                    continue
                self._trials[row.id] = number
            if row.status not in ("TERMINATED", "ERROR"):
                self._running.add(row.id)
                self.on_trial_result(row.id, row.result)
            elif Trial(optimizer, number).state == "pending" or (
                row.status == "TERMINATED" and Trial(optimizer, number).state == "failed"
            ):
                self._report(row.id, number, row.result, row.status == "ERROR")
        self._unstarted = unstarted
