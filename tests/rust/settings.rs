//! Random settings of every kind for the optimizers of the histories.

use belated::gp::kernel::KernelFamily;
use belated::strategy::bayes::acquisitions::Acquisition;
use belated::strategy::bayes::acquisitions::bound::{Beta, Schedule};
use belated::strategy::bayes::acquisitions::draws::DrawMethod;
use belated::strategy::bayes::acquisitions::log_ei::{Incumbent, LogEI};
use belated::strategy::bayes::acquisitions::max_variance::MaxVariance;
use belated::strategy::bayes::acquisitions::thompson_sampling::ThompsonSampling;
use belated::strategy::bayes::acquisitions::ucb::UCB;
use belated::strategy::bayes::acquisitions::ucb_pe::UCBPE;
use belated::strategy::bayes::settings::pending::{
    Censor, Hallucinate, Integrate, Late, Liar, Lie, Nearest, Pending, Statistic,
};
use belated::strategy::bayes::settings::search::{BoxSearch, Multistart, Search};
use belated::strategy::bayes::settings::surrogate::{
    Auto, FitRows, GP, Inputs, KernelChoice, Lengthscale, NamedMean, PriorMean, RefitClock,
    Surrogate, TargetScale,
};
use belated::strategy::bayes::settings::{DesignMethod, Initial, InitialDesign, Settings};
use belated::strategy::elimination::settings::{
    self as elimination, Delay, EstimatedDelay, Lengths, NoDelay, SubExponential, Tail, Theorem,
};
use belated::strategy::theory::{Constants, Theory};
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use serde_json::{Value, json};

use crate::number;

/// Random settings of every kind. Settings that `Settings::check` refuses for the domain are replaced.
pub fn settings(candidates: bool, floors: f64) -> impl Strategy<Value = Settings> {
    let window = option::weighted(0.6, select(vec![1e-300, 1.0, 3.5, 20.0, f64::MAX]));
    let how = select(vec![
        DesignMethod::QuasiRandom,
        DesignMethod::Uniform,
        DesignMethod::Uncertainty,
    ]);
    let design = (option::weighted(0.9, 0..3usize), how);
    (
        gp(),
        (acquisition(candidates), search(candidates)),
        pending(floors),
        window,
        design,
    )
        .prop_map(
            |(gp, (acquisition, search), pending, window, (n, how))| Settings {
                search: Search::Search(search),
                pending: Some(match (pending, window) {
                    _ if matches!(acquisition, Acquisition::UCBPE(_)) => {
                        Pending::Hallucinate(Hallucinate { repeats: false })
                    }
                    (Pending::Censor(censor), None) => Pending::Censor(Censor {
                        late: Late::Accept,
                        ..censor
                    }),
                    (pending, _) => pending,
                }),
                acquisition: match (&acquisition, pending) {
                    (Acquisition::UCBPE(_), _) => acquisition,
                    (_, Pending::Integrate(_)) => Acquisition::LogEI(LogEI::default()),
                    _ => acquisition,
                },
                surrogate: Surrogate::GP(gp),
                initial: Initial::Initial(InitialDesign { n, how }),
                window,
            },
        )
}

/// Random settings of tree search as JSON, with bounds of every kind and up to three instances.
pub fn tree_search() -> impl Strategy<Value = Value> {
    let constant = || option::weighted(0.5, positive(0.3));
    let bound = (
        select(vec!["DUCB1", "DUCB1Sigma", "DUCBV"]),
        constant(),
        positive(0.1),
    );
    let bound = bound.prop_map(|(kind, constant, noise)| match kind {
        "DUCB1" => json!({"kind": kind, "range": constant}),
        "DUCB1Sigma" => json!({"kind": kind, "noise_std": noise}),
        _ => json!({"kind": kind, "b": constant}),
    });
    let rho = select(vec![
        json!(null),
        json!(0.5),
        json!(1.0 - 1e-16),
        json!([0.9, 0.5, 1e-300]),
    ]);
    let choices = (
        select(vec!["uniform", "centre"]),
        select(vec!["lower_bound", "mean"]),
        select(vec!["frozen", "exact"]),
        option::of(any::<bool>()),
    );
    (bound, constant(), rho, choices).prop_map(|(bound, nu, rho, choices)| {
        let (sample, recommendation, refresh, front) = choices;
        json!({"kind": "TreeSearch", "bound": bound, "nu": nu, "rho": rho, "sample": sample,
               "recommendation": recommendation, "refresh": refresh, "front": front})
    })
}

/// Random settings of BPE-Delay with short and long horizons. Delays that are too long for the horizon are replaced.
pub fn bpe_delay(candidates: bool) -> impl Strategy<Value = elimination::Settings> {
    let known = (0.0..20.0, 0.0..5.0, 0.0..2.0)
        .prop_map(|(mean, xi, b)| Delay::SubExponential(SubExponential { mean, xi, b }));
    let delay = prop_oneof![
        2 => Just(Delay::EstimatedDelay(EstimatedDelay {})),
        1 => Just(Delay::NoDelay(NoDelay {})),
        2 => known,
    ];
    let beta = prop_oneof![
        3 => (0.0..6.0).prop_map(elimination::Beta::Fixed),
        1 => Just(elimination::Beta::Theory(Theorem::Theory)),
    ];
    let noise = prop_oneof![3 => positive(1e-3), 1 => Just(0.0)];
    let model = (
        positive(0.3),
        positive(1.0),
        noise,
        number(),
        select(KernelFamily::ALL.to_vec()),
    );
    let rounds = (
        select(vec![1usize, 4, 20, 300]),
        any::<bool>(),
        select(vec![Tail::Max, Tail::Min]),
        select(vec![Lengths::Paper, Lengths::Code]),
    );
    (model, rounds, delay, beta).prop_map(move |(model, rounds, delay, beta)| {
        let (lengthscale, signal, noise, mean, kernel) = model;
        let (horizon, keep_rounds, tail, lengths) = rounds;
        let settings = elimination::Settings {
            horizon: Some(horizon),
            lengthscale: Some(Lengthscale::Shared(lengthscale)),
            // The standard deviations are drawn as variances.
            signal_std: signal.sqrt(),
            noise_std: Some(noise.sqrt()),
            kernel,
            mean,
            delay,
            beta: match kernel {
                // The theorem on a box requires Lipschitz continuous functions, and the functions of this kernel are
                // not Lipschitz continuous.
                KernelFamily::Matern12 if !candidates => elimination::Beta::Fixed(2.0),
                _ => beta,
            },
            theory: Theory::Theory(Constants {
                rkhs_bound: Some(1.0),
                ..Constants::default()
            }),
            n_points: 40,
            keep_rounds,
            tail,
            lengths,
        };
        match settings.check(1) {
            Ok(_) => settings,
            Err(_) => elimination::Settings {
                delay: Delay::NoDelay(NoDelay {}),
                ..settings
            },
        }
    })
}

/// Returns the settings with all hyperparameters fitted, values in observed units and bounded covariances. The
/// covariances of the linear kernel overflow if the points overflow.
pub fn fitted(settings: Settings) -> Settings {
    let gp = settings.gp().clone();
    Settings {
        surrogate: Surrogate::GP(GP {
            kernel: match gp.kernel {
                KernelChoice::Family(KernelFamily::Linear) => {
                    KernelChoice::Family(KernelFamily::Matern52)
                }
                other => other,
            },
            lengthscale: None,
            signal_std: None,
            noise_std: None,
            initial_theta: None,
            mean: PriorMean::Named(NamedMean::Auto),
            targets: TargetScale::Standardized,
            ..gp
        }),
        ..settings
    }
}

/// Random positive numbers. Most numbers have the usual size, and some are extreme.
fn positive(usual: f64) -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => (0.1..10.0f64).prop_map(move |factor| usual * factor),
        1 => select(vec![1e-300, 1e-12, 1e-6, 1e6, 1e300]),
    ]
}

fn gp() -> impl Strategy<Value = GP> {
    let kernel = prop_oneof![
        4 => select(KernelFamily::ALL.to_vec()).prop_map(KernelChoice::Family),
        1 => Just(KernelChoice::Auto(Auto::Auto)),
    ];
    let given = prop_oneof![
        (
            option::weighted(0.2, positive(0.3)),
            option::weighted(0.2, positive(1.0)),
            option::weighted(0.2, positive(1e-3))
        ),
        (positive(0.3), positive(1.0), positive(1e-3)).prop_map(|(l, signal, noise)| (
            Some(l),
            Some(signal),
            Some(noise)
        )),
    ];
    let mean = prop_oneof![
        4 => select(vec![NamedMean::Zero, NamedMean::Estimated, NamedMean::Auto, NamedMean::Median])
            .prop_map(PriorMean::Named),
        1 => number().prop_map(PriorMean::Number)
    ];
    let scale = select(vec![
        TargetScale::Robust,
        TargetScale::Standardized,
        TargetScale::Raw,
    ]);
    let inputs = select(vec![Inputs::Warped, Inputs::Plain]);
    let refits = (
        1..4usize,
        prop_oneof![Just(1usize), Just(3), Just(10), Just(usize::MAX)],
        select(vec![RefitClock::Observations, RefitClock::Trials]),
        select(vec![FitRows::Policy, FitRows::Observed, FitRows::All]),
        option::weighted(0.2, [positive(0.3), positive(1.0), positive(0.01)]),
    );
    let model = (
        kernel,
        any::<bool>(),
        given,
        any::<bool>(),
        mean,
        (scale, inputs),
    );
    (model, refits).prop_map(|(model, refits)| {
        let (kernel, ard, (lengthscale, signal, noise), priors, mean, (targets, inputs)) = model;
        let (n_restarts, refit_every, refit_clock, fit_rows, initial_theta) = refits;
        // The standard deviations are drawn as variances, so that the limits of a double are reached.
        let std = |variance: f64| variance.sqrt();
        GP {
            kernel,
            ard,
            lengthscale: lengthscale.map(Lengthscale::Shared),
            signal_std: signal.map(std),
            noise_std: noise.map(std),
            mean,
            priors,
            targets,
            inputs,
            n_restarts,
            n_refit_restarts: n_restarts.min(2),
            refit_every,
            refit_clock,
            fit_rows,
            initial_theta: initial_theta.map(|[l, signal, noise]| [l, std(signal), std(noise)]),
        }
    })
}

/// Random searches, which are the default search for candidates.
fn search(candidates: bool) -> impl Strategy<Value = BoxSearch> {
    let effort = select(vec![0.5, 1.0]);
    let literature = prop_oneof![
        4 => Just((None, None)),
        1 => (1..40usize, 0..4usize).prop_map(|(n_raw, n_starts)| (Some(Multistart(n_raw, n_starts)), None)),
        1 => (1..60usize).prop_map(|n| (None, Some(n))),
    ];
    (effort, literature).prop_map(move |(effort, literature)| {
        let (multistart, direct) = if candidates { (None, None) } else { literature };
        BoxSearch {
            effort,
            multistart,
            direct,
        }
    })
}

fn acquisition(candidates: bool) -> impl Strategy<Value = Acquisition> {
    let beta = prop_oneof![
        (0.0..3.0).prop_map(Beta::Constant),
        Just(Beta::Constant(1e300)),
        Just(Beta::Schedule(Schedule::Kandasamy)),
        Just(Beta::Schedule(Schedule::KandasamyCode)),
        Just(Beta::Schedule(Schedule::Theory)),
    ];
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (0..5u8, beta, flags, 1..40usize).prop_map(
        move |(kind, beta, (predictive_std, widen, weights), n_features)| match kind {
            0 => Acquisition::LogEI(LogEI {
                incumbent: match widen {
                    true => Incumbent::PosteriorMean,
                    false => Incumbent::BestValue,
                },
            }),
            1 => Acquisition::MaxVariance(MaxVariance {}),
            4 => Acquisition::UCBPE(UCBPE {
                beta,
                ..UCBPE::default()
            }),
            2 => Acquisition::UCB(UCB {
                beta,
                predictive_std,
                per_batch: widen,
                ..UCB::default()
            }),
            _ => Acquisition::ThompsonSampling(ThompsonSampling {
                beta,
                draws: match weights && !candidates {
                    true => DrawMethod::WeightSpace,
                    false => DrawMethod::Pathwise,
                },
                n_features,
                widen,
                predictive_std,
                ..ThompsonSampling::default()
            }),
        },
    )
}

fn pending(floors: f64) -> impl Strategy<Value = Pending> {
    let floor = option::weighted(0.5, prop_oneof![Just(floors), number()]);
    let late = select(vec![Late::Accept, Late::Discard]);
    let liar = |value| Pending::Liar(Liar { value });
    prop_oneof![
        1 => Just(Pending::Ignore {}),
        2 => any::<bool>().prop_map(|repeats| Pending::Hallucinate(Hallucinate { repeats })),
        2 => (floor, late, any::<bool>()).prop_map(|(floor, late, repeats)| Pending::Censor(Censor { floor, late, repeats })),
        1 => (1..9usize).prop_map(|k| Pending::Nearest(Nearest { k })),
        2 => (1..9usize).prop_map(|n| Pending::Integrate(Integrate { n })),
        1 => select(vec![Statistic::Min, Statistic::Mean, Statistic::Max])
            .prop_map(move |of| liar(Lie::Of(of))),
        1 => number().prop_map(move |y| liar(Lie::Number(y))),
    ]
}
