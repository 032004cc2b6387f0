"""belated in Optuna.

* `BelatedSampler`: belated's optimizers as a sampler that takes late results into account;
* `BelatedPruner`: belated's rules that stop trials, as a pruner;
* `withdraw`: take back the values of finished trials.

Optuna's terms: the parameters of the *relative* search space are sampled together, at the first ``suggest_*`` of a
trial (before Optuna 5, at the start of the trial). Each of the other parameters is sampled *independently*, when the
objective calls ``suggest_*`` for this parameter.
"""

import hashlib
import math
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.logging import get_logger
from optuna.pruners import BasePruner
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from belated._core import InvalidSetting, InvalidValue, UnknownTrial
from belated.integrations.arguments import ADVICE, check_optimizer
from belated.integrations.optuna_log import NOTE, OptunaLog
from belated.integrations.optuna_pruner_log import PrunerLog
from belated.optimizers.bayes import BayesOpt
from belated.optimizers.curve import Curve, ModelStopping, Stopping, StoppingName, check_curve
from belated.optimizers.optimizer import Optimizer
from belated.optimizers.optuna_outcomes import CONSTRAINTS, constraints_of
from belated.optimizers.outcomes import AtMost, Goal, objectives
from belated.optimizers.report import as_text
from belated.optimizers.values import checked
from belated.run.arguments import positive_seconds
from belated.short_repr import short_repr
from belated.space.arguments import is_list, whole_number
from belated.space.space import Space
from belated.study.from_optuna import WITHDRAWN, Withdrawn, dimension_of, goals_of, minimizes, withdrawn_trials

_logger = get_logger(__name__)

# The number of consecutive trials over which independently sampled values are spread evenly.
_STRATA = 8


class _CommonSpace:
    """The parameters that all completed trials of a study have with the same distribution.

    Optuna's `IntersectionSearchSpace` finds the same parameters. This class reads each trial only once, because
    comparing distributions is slow.
    """

    def __init__(self, study: Study) -> None:
        self._storage, self._study_id = study._storage, study._study_id
        self._seen: set[int] = set()
        self._common: dict[str, BaseDistribution] | None = None

    def is_of(self, study: Study) -> bool:
        """Return whether this is the common space of the study."""
        return study._storage is self._storage and bool(study._study_id == self._study_id)

    def of(self, trials: Sequence[FrozenTrial]) -> dict[str, BaseDistribution] | None:
        """Return the parameters by name in alphabetical order, or None if the study has no completed trial."""
        for trial in trials:
            if trial.state == TrialState.COMPLETE and trial.number not in self._seen:
                self._seen.add(trial.number)
                theirs = trial.distributions
                common = theirs if self._common is None else self._common
                self._common = {name: common[name] for name in sorted(common) if theirs.get(name) == common[name]}
        return self._common


class BelatedSampler(BaseSampler):  # type: ignore[misc]
    """A sampler for Optuna, version 4.5 or later: Bayesian optimisation that takes running trials into account.

    All state is in Optuna's study. Every process reads the trials from the study. belated stores fitted hyperparameters
    in the trials' system attributes. Any number of processes can therefore share a study, and each process has its own
    sampler. A new sampler continues where the last sampler ended.

    Parameters
    ----------
    optimizer : callable, optional
        Called as ``optimizer(space, direction=direction, seed=seed)``, with ``curve=curve`` if a curve is given;
        returns the optimizer. The callable may be an optimizer's class, or ``functools.partial(bl.BayesOpt,
        acquisition="ucb")``. Processes that share a study should pass the same callable. If trials have constraints, it
        is also called with ``outcomes=outcomes``. If the study has several objectives, it is called as
        ``optimizer(space, seed=seed, outcomes=outcomes)``. Default None: `BayesOpt`.
    seed : int, optional
        A seed from 0 to 2**64 - 1. Samples depend on the seed and on the present trials of the study, so all processes
        may use the same seed. Default None: a seed computed from the name and the start time of the study. All
        processes of the study then use the same seed.
    search_space : mapping, optional
        Parameter's name → distribution. These parameters are sampled together from the first trial on. Default None:
        the parameters that occur in all completed trials with the same distribution. Before a trial has completed, the
        parameters of the trial with the most parameters are used. The parameters of the first trial are therefore
        sampled independently.
    stale_after : float, optional
        A running trial counts as pending for this many seconds after its start, measured by this machine's clock. A
        result that arrives later is still used. Default None: a running trial always counts as pending, because only
        you know how long an evaluation may take.
    constraints_func : callable, optional
        As for Optuna's samplers: takes a `FrozenTrial` and returns the values of the constraints. A constraint is
        violated if its value is above 0. In Optuna 5, ``trial.set_constraint`` replaces this argument; both are read.
        Each constraint is an outcome of the optimizer with the goal ``bl.AtMost(0.0)``, and has a model.
    independent_sampler : BaseSampler, optional
        The sampler of parameters that are not sampled together. Default None: values that are spread evenly.
    warn_independent_sampling : bool, default True
        Whether to log a warning when a parameter is sampled independently although the study has a completed trial.
    curve : Curve, optional
        The learning curve of each trial, whose values are the values of ``trial.report``. The optimizer then has the
        reports of all trials. The steps of Optuna may begin at 0 or 1: as soon as a trial has reported step 0, 1 is
        added to all steps. Default None: only the final values of pruned trials are estimated from reports.

    Raises
    ------
    InvalidSetting
        An argument is invalid. This error is also raised when a trial is sampled: if the study has more than three
        objectives, if it has several objectives and a curve is given, or if a trial has reported a step beyond the
        curve.
    InvalidSpace
        Raised when a trial is sampled: a distribution cannot be searched, for example because it has integers beyond
        2**40.

    Notes
    -----
    ======== ====================================================================================================
    a trial  counts as
    ======== ====================================================================================================
    COMPLETE observed; failed if the value is infinite
    FAIL     failed: points near it are avoided
    PRUNED   observed with an estimate of its final value; failed if it has no last report, or that report is not
             finite
    RUNNING  pending, as soon as its point is known
    ======== ====================================================================================================

    In a study with two or three directions, each direction is an objective of a front. The objectives have the names of
    Optuna's metrics, or else "values_0", "values_1", …. An objective whose value is infinite has failed, and the other
    objectives are observed. A pruned trial has failed.

    With a curve, a pruned trial is not observed but stopped, unless it counts as failed. A reported value that is not
    finite counts as a failed step. `BelatedPruner` compares the curves of trials that satisfy the constraints, and a
    trial that violates a constraint counts as failed there.

    Constraints are known when the trial has ended. Values of constraints are used in every state of an ended trial. A
    constraint that a trial does not have is missing, and its model leaves the trial out.

    The estimate for a pruned trial without a curve is its last report plus the median gain of the trials that went
    further. The gain of a trial is its final value minus its report at the last step of the pruned trial. If some of
    these other trials had a better report at that step, the estimate is limited to the worst of their final values. The
    estimate is never better than the value of the best completed trial. If the pruner is a `HyperbandPruner`, the
    sampler uses the trials of all brackets.

    Examples
    --------
    >>> import optuna
    >>> from belated.integrations.optuna import BelatedSampler
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(sampler=BelatedSampler(seed=0))
    >>> study.optimize(lambda trial: (trial.suggest_float("x", -5.0, 5.0) - 1.0) ** 2, n_trials=15)
    >>> abs(study.best_params["x"] - 1.0) < 0.2
    True
    """

    def __init__(
        self,
        optimizer: Callable[..., Optimizer] | None = None,
        *,
        seed: int | None = None,
        search_space: Mapping[str, BaseDistribution] | None = None,
        stale_after: float | None = None,
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
        independent_sampler: BaseSampler | None = None,
        warn_independent_sampling: bool = True,
        curve: Curve | None = None,
    ) -> None:
        whole = None if seed is None else whole_number(seed)
        if seed is not None and (whole is None or not 0 <= whole < 2**64):
            raise InvalidSetting(f"seed={short_repr(seed)} is not usable: pass an integer from 0 to 2**64 - 1, or None")
        stale = positive_seconds("stale_after", stale_after)
        for name, given in (("optimizer", optimizer), ("constraints_func", constraints_func)):
            if given is not None and not callable(given):
                raise InvalidSetting(f"{name}={short_repr(given)} is not usable: pass a function, or None")
        if independent_sampler is not None and not isinstance(independent_sampler, BaseSampler):
            raise InvalidSetting(
                f"independent_sampler={short_repr(independent_sampler)} is not usable: pass a sampler of Optuna"
            )
        check_curve(curve)
        self._make: Callable[..., Optimizer] = BayesOpt if optimizer is None else optimizer
        self._curve = curve
        self._seed = whole
        self._given_space = None if search_space is None else _checked_space(search_space)
        self._stale_after = None if stale is None else timedelta(seconds=stale)
        self._constraints_func = constraints_func
        self._independent = independent_sampler
        self._warns = warn_independent_sampling
        self._forget()

    def _forget(self) -> None:
        """Drop cached data."""
        self._lock, self._space_lock = threading.Lock(), threading.Lock()
        self._common: _CommonSpace | None = None
        self._log: OptunaLog | None = None
        self._made_for: Any = None
        self._n_samples = 0
        # The trials of a study as they were last read, before a trial was sampled: (storage, id of this trial, number
        # of samples before the trials were read, trials).
        self._read: tuple[Any, int, int, list[FrozenTrial]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        kept = ("_lock", "_space_lock", "_common", "_log", "_made_for", "_n_samples", "_read")
        return {name: value for name, value in vars(self).items() if name not in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    # Methods that Optuna calls, in the order of the calls.

    def reseed_rng(self) -> None:
        """Reseed only `independent_sampler`. Copies of this sampler sample different trials, so they differ anyway."""
        if self._independent is not None:
            self._independent.reseed_rng()

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Refuse a study with too many objectives before the objective function is called; the trial then fails."""
        try:
            self._goals_of(study)
        except InvalidSetting:
            # Optuna does not end the trial if the sampler raises an error here.
            study._storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)
            raise
        if self._independent is not None:
            self._independent.before_trial(study, trial)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return the parameters that are sampled together, except constants; see the argument `search_space`."""
        if self._given_space is not None:
            return dict(self._given_space)
        n_samples, trials = self._n_samples, _trials_of(study)
        self._read = (study._storage, trial._trial_id, n_samples, trials)
        return self._space_of(study, trials)

    def _space_of(self, study: Study, trials: Sequence[FrozenTrial]) -> dict[str, BaseDistribution]:
        """Return the parameters that are sampled together, except constants."""
        if self._given_space is not None:
            return dict(self._given_space)
        with self._space_lock:
            if self._common is None or not self._common.is_of(study):
                self._common = _CommonSpace(study)
            found = self._common.of(trials)
        if found is None:  # the study has no completed trial
            found = max((each.distributions for each in trials), key=len, default={})
            found = dict(sorted(found.items()))
        return {name: distribution for name, distribution in found.items() if not distribution.single()}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the point that the optimizer suggests for a trial."""
        searched = {name: each for name, each in search_space.items() if not each.single()}
        if not searched:
            return {}
        stale_before = None if self._stale_after is None else datetime.now() - self._stale_after
        with self._lock:
            read, self._read = self._read, None
            # If another thread has sampled a trial since the trials were read, its point must be read first.
            is_of_now = read is not None and read[:3] == (study._storage, trial._trial_id, self._n_samples)
            trials = read[3] if read is not None and is_of_now else _trials_of(study)
            log = self._log_for(study, trials, searched)
            log.withdrawn = _withdrawn(study)
            params, note = log.suggest(trial, trials, stale_before)
            study._storage.set_trial_system_attr(trial._trial_id, NOTE, note)
            self._n_samples += 1
        return params

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Return a value for one parameter. Eight consecutive trials use different eighths of the parameter's range."""
        trials = _trials_of(study)
        if self._warns and any(each.state == TrialState.COMPLETE for each in trials):
            _logger.warning(
                f"trial {trial.number}: parameter {param_name!r} is sampled independently of the others, because not "
                "all completed trials have it with this distribution (warn_independent_sampling=False turns this off)"
            )
        if self._independent is not None:
            return self._independent.sample_independent(study, trial, param_name, param_distribution)
        dimension = dimension_of(param_name, param_distribution)
        u = _stratified(self._seed_of(study, trials), param_name, trial.number)
        n_levels = dimension.n_levels
        if n_levels is not None and not getattr(dimension, "log", False):
            return dimension.member(min(int(u * n_levels), n_levels - 1))
        return dimension.decode([u])

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Compute the constraint values of a trial that has ended."""
        if self._constraints_func is not None and state in (TrialState.COMPLETE, TrialState.PRUNED):
            measured = [float(value) for value in self._constraints_func(trial)]
            if any(map(math.isnan, measured)):  # a value may be infinite
                raise InvalidSetting("constraints_func returned NaN: return numbers, above 0 for a violated constraint")
            study._storage.set_trial_system_attr(trial._trial_id, CONSTRAINTS, measured)
        if self._independent is not None:
            self._independent.after_trial(study, trial, state, values)

    def _seed_of(self, study: Study, trials: Sequence[FrozenTrial]) -> int:
        """Return the given seed, or a seed that is the same in all processes of a study and differs between studies."""
        if self._seed is not None:
            return self._seed
        began = next((trial.datetime_start for trial in trials if trial.datetime_start is not None), None)
        digest = hashlib.sha256(f"{study.study_name} {began}".encode()).digest()
        return int.from_bytes(digest[:8], "big") >> 1

    def _goals_of(self, study: Study) -> dict[str, Goal]:
        """Return the goals of the objectives by name. Raise an error if the sampler does not support them."""
        if self._curve is not None:
            minimizes(study)
        return goals_of(study)

    def _log_for(
        self, study: Study, trials: Sequence[FrozenTrial], search_space: dict[str, BaseDistribution]
    ) -> OptunaLog:
        """Return the log of an optimizer for this space. Reuse the last log if it has the same space."""
        constraints = constraints_of(trials)
        goals = list(self._goals_of(study).items())
        wanted = (list(search_space.items()), goals, self._seed_of(study, trials), constraints)
        if self._log is None or self._made_for != wanted:
            self._log = OptunaLog(self._optimizer_of(study, trials, search_space, constraints))
            self._made_for = wanted
        return self._log

    def _optimizer_of(
        self,
        study: Study,
        trials: Sequence[FrozenTrial],
        search_space: dict[str, BaseDistribution],
        constraints: Sequence[str] = (),
    ) -> Optimizer:
        """Return an optimizer without trials, which has the definition of the optimizer that chooses the points.

        `constraints` has the names of the constraints that are outcomes.
        """
        goals, seed = self._goals_of(study), self._seed_of(study, trials)
        is_front, direction = len(goals) > 1, "maximize"
        space = Space({name: dimension_of(name, each) for name, each in search_space.items()})
        declared: dict[str, Any] = {} if self._curve is None else {"curve": self._curve}
        if not is_front:  # the goals of several objectives have the directions
            declared["direction"] = direction = "minimize" if minimizes(study) else "maximize"
        outcomes = {**goals, **dict.fromkeys(constraints, AtMost(0.0))} if is_front or constraints else {}
        if outcomes:
            declared["outcomes"] = outcomes
        made = self._make(space, seed=seed, **declared)
        refused = ("context", "fidelity", "time", *(() if outcomes else ("outcomes",)))
        check_optimizer(made, space, direction, ADVICE, users="trials of Optuna", refused=refused)
        own = made._problem.outcomes
        kinds = [{name: type(each[name]) for name in objectives(each)} for each in (own, outcomes)]
        if list(own) != list(outcomes) or kinds[0] != kinds[1]:
            raise InvalidSetting(f"optimizer has other outcomes than {list(outcomes)}: pass its argument outcomes on")
        if made.seed_ != seed or made.n_trials:
            raise InvalidSetting(f"optimizer has another seed, or trials already: {ADVICE}")
        if self._curve not in (None, made.curve):
            raise InvalidSetting(
                f"optimizer has curve={made.curve!r}, and the sampler has curve={self._curve!r}: leave one of them out"
            )
        return made


class BelatedPruner(BasePruner):  # type: ignore[misc]
    """A pruner for Optuna, version 4.5 or later: the rules of belated that stop trials.

    The pruner can be used with every sampler. It reads the trials from the study, so each process that shares a study
    may have a separate pruner.

    Parameters
    ----------
    stopping : Stopping or str, default "model"
        The rule: `ModelStopping`, `ASHA`, `MedianStopping`, or the string of a rule such as ``"asha"``.
    curve : Curve, optional
        The learning curve of each trial. The steps of Optuna may begin at 0 or 1: as soon as a trial has reported step
        0, 1 is added to all steps, so that step 0 is the first step of the curve. Default None: the curve of the
        `BelatedSampler` of the study.

    Raises
    ------
    InvalidSetting
        An argument is invalid. This error is also raised by ``trial.should_prune`` if the curve is missing or differs
        from the curve of the sampler, and if a trial has reported a step beyond the curve.

    Notes
    -----
    Trials without a result, pruned trials and failed trials count with their reports. A reported value that is not
    finite counts as a failed step.

    Examples
    --------
    >>> import belated as bl
    >>> import optuna
    >>> from belated.integrations.optuna import BelatedPruner, BelatedSampler
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> def objective(trial):
    ...     x = trial.suggest_float("x", -5.0, 5.0)
    ...     for step in range(10):
    ...         loss = (x - 1.0) ** 2 + 1 / (step + 1)
    ...         trial.report(loss, step)
    ...         if trial.should_prune():
    ...             raise optuna.TrialPruned
    ...     return loss
    >>> sampler = BelatedSampler(seed=0, curve=bl.Curve(10))
    >>> study = optuna.create_study(sampler=sampler, pruner=BelatedPruner("asha"))
    >>> study.optimize(objective, n_trials=20)
    >>> any(trial.state == optuna.trial.TrialState.PRUNED for trial in study.trials)
    True
    """

    def __init__(self, stopping: Stopping | StoppingName = "model", *, curve: Curve | None = None) -> None:
        if stopping is None:
            raise InvalidSetting("stopping=None is not usable: pass a rule such as 'asha', or leave out the pruner")
        check_curve(curve)
        rule: Stopping = checked(ModelStopping() if stopping == "auto" else stopping, Stopping, "stopping")
        self._rule, self._curve = rule, curve
        self._forget()

    def _forget(self) -> None:
        """Drop cached data."""
        self._lock = threading.Lock()
        self._log: PrunerLog | None = None
        self._made_for: Any = None
        # Provides the settings of the model if the study has another sampler; does not choose points.
        self._own_sampler = BelatedSampler(curve=self._curve)

    def __getstate__(self) -> dict[str, Any]:
        return {"_rule": self._rule, "_curve": self._curve}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Return whether the rule stops a trial after its last report. Optuna calls this method."""
        trials = _trials_of(study)
        with self._lock:
            log = self._log_for(study, trials)
            if log is None:
                return False
            log.withdraw(_withdrawn(study))
            return log.stops(trial, trials)

    def _log_for(self, study: Study, trials: Sequence[FrozenTrial]) -> PrunerLog | None:
        """Return the log of a study; None if the rule needs points and the trials do not have any parameters."""
        sampler = study.sampler
        if not isinstance(sampler, BelatedSampler) or sampler._curve is None:
            sampler = self._own_sampler
        curve = sampler._curve
        if curve is None:
            raise InvalidSetting(
                "curve is missing: pass curve=bl.Curve(steps) to BelatedPruner, or to the BelatedSampler of the study"
            )
        if self._curve not in (None, curve):
            raise InvalidSetting(
                f"curve={self._curve!r} in BelatedPruner, and {curve!r} in BelatedSampler: leave one of them out"
            )
        direction = "minimize" if minimizes(study) else "maximize"
        space = sampler._space_of(study, trials) if self._rule._uses_model else {}
        wanted = [study._storage, study._study_id, direction, curve, sampler, list(space.items())]
        if self._log is not None and self._made_for == wanted:
            return self._log
        if not self._rule._uses_model:
            self._log = PrunerLog.without_points(curve, direction, self._rule)
        elif space:
            self._log = PrunerLog(OptunaLog(sampler._optimizer_of(study, trials, space)), self._rule)
        else:
            return None
        self._made_for = wanted
        return self._log


def withdraw(
    study: Study, trial: FrozenTrial | int | Sequence[FrozenTrial | int], *, reason: str | None = None
) -> None:
    """Take back the values of finished trials, for example of contaminated samples.

    A finished trial of Optuna cannot change: ``study.best_trial`` and other samplers still use the value. A user
    attribute of the study records the withdrawal, which `BelatedSampler`, `BelatedPruner` and `Study.from_optuna` read.
    To evaluate the point again, call ``study.enqueue_trial``.

    Parameters
    ----------
    study : optuna.Study
        The study.
    trial : FrozenTrial or int, or a list of these
        The finished trials, or their numbers. Either all trials of a list are withdrawn, or none of them.
    reason : str, optional
        The reason, which is stored in the attribute.

    Raises
    ------
    InvalidValue
        A trial has not finished or was already withdrawn, or the reason is not a string.
    UnknownTrial
        A trial with this number does not exist.

    Examples
    --------
    >>> import optuna
    >>> from belated.integrations.optuna import BelatedSampler, withdraw
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(sampler=BelatedSampler(seed=0))
    >>> study.optimize(lambda trial: (trial.suggest_float("x", -5.0, 5.0) - 1.0) ** 2, n_trials=5)
    >>> withdraw(study, 3, reason="contaminated flask")
    >>> [record["reason"] for name, record in study.user_attrs.items() if name.startswith("belated:withdrawn:3")]
    ['contaminated flask']
    """
    text, known, withdrawn = as_text("reason", reason), _trials_of(study), _withdrawn(study)
    numbers: dict[int, None] = {}
    given: Any = trial if is_list(trial) else [trial]
    for each in given:
        number = each.number if isinstance(each, FrozenTrial) else whole_number(each)
        if number is None or not 0 <= number < len(known):
            raise UnknownTrial(f"trial {short_repr(each)} is unknown: the study has {len(known)} trials")
        if not known[number].state.is_finished() or number in withdrawn:
            state = "withdrawn" if number in withdrawn else known[number].state.name
            raise InvalidValue(f"trial {number} is {state} and cannot be withdrawn: pass finished trials of the study")
        numbers[number] = None
    if numbers:
        record = {"numbers": list(numbers), "reason": text, "before": len(known), "at": time.time()}
        # Each call writes another attribute, so that it cannot replace the record of another process.
        study.set_user_attr(f"{WITHDRAWN}{next(iter(numbers))}:{uuid.uuid4().hex}", record)


def _withdrawn(study: Study) -> dict[int, Withdrawn]:
    """Return the withdrawn trials of a study, by number."""
    return withdrawn_trials(study._storage.get_study_user_attrs(study._study_id))


def _checked_space(given: Any) -> dict[str, BaseDistribution]:
    """Return the distributions that have more than one value. Raise an error if a distribution cannot be searched."""
    if not isinstance(given, Mapping) or not all(isinstance(each, BaseDistribution) for each in given.values()):
        raise InvalidSetting(
            f"search_space={short_repr(given)} is not usable: pass a dict of parameter's name → distribution of Optuna"
        )
    Space({name: dimension_of(name, each) for name, each in given.items()})
    return {name: each for name, each in given.items() if not each.single()}


def _trials_of(study: Study) -> list[FrozenTrial]:
    """Return all trials of a study. With `HyperbandPruner`, `get_trials` returns only the trials of one bracket."""
    trials: list[FrozenTrial] = study._storage.get_all_trials(study._study_id, deepcopy=False)
    return trials


def _stratified(seed: int, name: str, number: int) -> float:
    """Return u in [0, 1) for the parameter `name` of a trial. Each block of `_STRATA` consecutive trials forms a Latin
    hypercube over all parameters."""
    block, place = divmod(number, _STRATA)
    stream = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
    rng = np.random.default_rng([seed, stream, block])
    return float((rng.permutation(_STRATA)[place] + rng.random(_STRATA)[place]) / _STRATA)
