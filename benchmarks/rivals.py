"""Multi-fidelity optimizers of other packages, as policies of curve_policies.py. The fidelity is the number of steps.

Each package needs a separate environment with the pinned packages in requirements/:

    python -m venv smac && smac/bin/pip install -r benchmarks/requirements/smac.txt
    PYTHONHASHSEED=0 smac/bin/python benchmarks/curve_policies.py run results.jsonl --policies smac

The compiled package `belated` must be importable in each environment. The results of SMAC depend on PYTHONHASHSEED.
All settings are the defaults of the packages, unless a class says otherwise. The smallest fidelity is one step, and η
is 3. SMAC and DEHB use the fidelities T/3^k, which are rounded to whole steps. All optimizers search the numbers of the
levels.
"""

import math
import tempfile
from datetime import datetime

import belated as bl


class Rival:
    """A policy that maximises the declared value. A subclass defines ``_suggest``, ``_report`` and ``_fail``.

    The values are a curve, or its running maximum if the declared value is the highest value.
    """

    def __init__(self, family):
        self.dimensions = dict(zip(family.grid.names, family.grid.dimensions, strict=True))
        self.n_steps, self.best = family.n_steps, family.declared == "best"
        self.values = []  # for each trial, the list of its values

    def _start(self, levels):
        """Return the params of a new trial, for a mapping from the names to the numbers of the levels."""
        self.values.append([])
        return {name: each.member(int(levels[name])) for name, each in self.dimensions.items()}

    def report(self, trial, step, value):
        values = self.values[trial]
        values.append(max([value, *values[-1:]]) if self.best else value)
        return self._report(trial, step, values[-1])

    def end(self, trial, value):
        if math.isnan(value):
            self.values[trial].append(value)
            self._fail(trial)


class Promotions(Rival):
    """An optimizer that trains a trial for a number of steps, and may ask for more steps of the same trial later.

    A subclass defines ``_suggest()``, which returns a job, the key of its configuration, the levels and the fidelity,
    and ``_tell(job, value)``, where the value of a failed trial is NaN.
    """

    def __init__(self, family):
        super().__init__(family)
        self.numbers, self.jobs = {}, {}

    def ask(self):
        while True:
            try:
                job, key, levels, fidelity = self._suggest()
            except StopIteration:
                return None
            goal = max(round(fidelity), 1)
            number = self.numbers.get(key)
            if number is None or number in self.jobs:  # DEHB may ask for a configuration again while it is trained
                self.numbers[key] = len(self.values)
                self.jobs[len(self.values)] = job, goal
                return self._start(levels)
            values = self.values[number]
            if len(values) < goal and not math.isnan(values[-1]):
                self.jobs[number] = job, goal
                return number
            self._tell(job, values[min(goal, len(values)) - 1])  # the value is known without a further step

    def _report(self, trial, step, value):
        job, goal = self.jobs[trial]
        if step == goal:
            del self.jobs[trial]
            self._tell(job, value)
        return step == goal

    def _fail(self, trial):
        self._tell(self.jobs.pop(trial)[0], math.nan)


def _configuration_space(dimensions):
    from ConfigSpace import CategoricalHyperparameter, ConfigurationSpace, OrdinalHyperparameter

    kinds = {True: CategoricalHyperparameter, False: OrdinalHyperparameter}
    space = ConfigurationSpace()
    space.add(
        [kinds[isinstance(each, bl.Categorical)](name, list(range(each.n_levels))) for name, each in dimensions.items()]
    )
    return space


class SMAC(Promotions):
    """SMAC3's facade for several fidelities: Hyperband with a random forest.

    There are 5 initial configurations, as in the package's example with epochs as the fidelity. The number of tries to
    find a new configuration is large, because the spaces are small. The user of the package must choose a finite cost
    of a crash: here, the highest cost so far, and at least 0.
    """

    def __init__(self, family, seed, n_configs=5, min_trials=1):
        from smac import MultiFidelityFacade, Scenario
        from smac.main.config_selector import ConfigSelector

        super().__init__(family)
        self.folder = tempfile.TemporaryDirectory()
        scenario = Scenario(
            _configuration_space(self.dimensions),
            output_directory=self.folder.name,
            min_budget=1,
            max_budget=family.n_steps,
            n_trials=500,
            seed=seed,
        )
        facade = MultiFidelityFacade
        self.facade = facade(
            scenario,
            initial_design=facade.get_initial_design(scenario, n_configs=n_configs),
            config_selector=ConfigSelector(scenario, max_new_config_tries=10_000, min_trials=min_trials),
            logging_level=False,
            overwrite=True,
        )
        self.worst = 0.0

    def _suggest(self):
        from joblib import parallel_config

        with parallel_config(backend="sequential"):  # the forest is so small that starting threads takes longer
            info = self.facade.ask()
        return info, info.config, info.config, info.budget

    def _tell(self, info, value):
        from smac.runhistory import StatusType, TrialValue

        failed = math.isnan(value)
        if not failed:
            self.worst = max(self.worst, -value)
        cost, status = (self.worst, StatusType.CRASHED) if failed else (-value, StatusType.SUCCESS)
        self.facade.tell(info, TrialValue(cost=cost, status=status), save=False)


class DEHB(Promotions):
    """DEHB: Hyperband with differential evolution. The fitness of a failed trial is infinite, like the package's
    fitness of points without a result."""

    def __init__(self, family, seed):
        from dehb import DEHB as Optimizer

        super().__init__(family)
        self.folder = tempfile.TemporaryDirectory()
        self.optimizer = Optimizer(
            cs=_configuration_space(self.dimensions),
            min_fidelity=1,
            max_fidelity=family.n_steps,
            n_workers=1,  # another number of workers would start a Dask cluster, which ask and tell do not use
            seed=seed,
            save_freq="end",
            output_path=self.folder.name,
        )

    def _suggest(self):
        job = self.optimizer.ask()
        return job, int(job["config_id"]), job["config"], float(job["fidelity"])

    def _tell(self, job, value):
        self.optimizer.tell(job, {"fitness": math.inf if math.isnan(value) else -value, "cost": 1.0})


class MOBSTER(Rival):
    """MOBSTER of Syne Tune, of type "stopping"; ``options`` are search options.

    For speed, the model is fitted from one start instead of two, and only at every tenth suggestion after 50 results.
    The searcher suggests no configuration twice, so a worker is idle after all configurations have been suggested.
    """

    def __init__(self, family, seed, **options):
        from syne_tune.backend.trial_status import Trial
        from syne_tune.config_space import choice, ordinal
        from syne_tune.optimizer.legacy_baselines import MOBSTER as Scheduler

        super().__init__(family)
        fast = {"debug_log": False, "opt_nstarts": 1, "opt_skip_init_length": 50, "opt_skip_period": 10}
        space = {}
        for name, each in self.dimensions.items():
            levels = list(range(each.n_levels))
            space[name] = choice(levels) if isinstance(each, bl.Categorical) else ordinal(levels, kind="equal")
        self.make = Trial
        self.scheduler = Scheduler(
            space,
            metric="value",
            mode="max",
            resource_attr="step",
            max_t=family.n_steps,
            type="stopping",
            random_seed=seed,
            search_options=fast | options,
        )
        self.trials = []

    def ask(self):
        suggestion = self.scheduler.suggest(len(self.trials))
        if suggestion is None:
            return None
        self.trials.append(self.make(len(self.trials), suggestion.config, datetime.now()))
        return self._start(suggestion.config)

    def _report(self, trial, step, value):
        return self.scheduler.on_trial_result(self.trials[trial], {"value": value, "step": step}) == "STOP"

    def _fail(self, trial):
        self.scheduler.on_trial_error(self.trials[trial])
