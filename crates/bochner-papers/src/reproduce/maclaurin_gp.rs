//! Thesis, figures 5.4, 5.5, D.2 to D.5 and table D.1: optimised Maclaurin features in Gaussian processes.

use super::data::Prepared;
use super::gp::{Form, Method, Scores, Setting, Sizes, Task, Validation, compare};
use super::{Experiment, Findings, Reduced, Run, comparison};
use bochner::feature::{Directions, FourierSpec, MaclaurinKernel, MaclaurinSpec, SketchKind, SphericalSpec};
use bochner::variance::{Form as Phase, Weights};
use bochner_report::plot::{Axis, Plot, Series, Style};
use bochner_report::table::{Cell, Table};
use bochner_table::failure::Outcome;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "maclaurin-gp",
    what: "optimised Maclaurin features against spherical and orthogonal Fourier features in Gaussian processes",
    source: "thesis, figures 5.4, 5.5, D.2 to D.5, table D.1; kernels (1 - |x - y|²/16)^20 on unit rows and Gaussian with \
             median length scale, D = d, 3d and 5d with d the padded dimension; regularisation of all chosen with the first \
             method on a tenth of the training rows",
    needs: &[
        "boston",
        "concrete",
        "energy",
        "kin8nm",
        "naval",
        "powerplant",
        "protein",
        "yacht",
        "cod_rna",
        "covertype",
        "fashion-mnist",
        "magic",
        "mnist",
        "mocap",
    ],
    minutes: 30.0,
    run,
};

/// Data set, padded dimension, task, and whether a quick run has time for it.
const SETS: [(&str, usize, Task, bool); 14] = {
    use Task::{Classification as C, Regression as R};
    [
        ("boston", 16, R, true),
        ("concrete", 8, R, false),
        ("energy", 8, R, true),
        ("kin8nm", 8, R, true),
        ("naval", 16, R, false),
        ("powerplant", 4, R, false),
        ("protein", 16, R, false),
        ("yacht", 8, R, true),
        ("cod_rna", 8, C, true),
        ("covertype", 64, C, false),
        ("fashion-mnist", 1024, C, true),
        ("magic", 16, C, true),
        ("mnist", 1024, C, false),
        ("mocap", 64, C, false),
    ]
};

const DEGREE: u32 = 20;
const A: f64 = 4.0;
/// Seeds of the thesis, each with rows and maps of its own.
const SEEDS: usize = 10;
/// Multiples of the dimension.
const BUDGETS: [usize; 3] = [1, 3, 5];

const SPHERICAL: &str = "spherical";
const FOURIER: &str = "Fourier";
const RADEMACHER: &str = "Maclaurin Rademacher";
const SRHT: &str = "Maclaurin TensorSRHT";
const COMPLEX: &str = "Maclaurin TensorSRHT, complex";

fn maclaurin(base: &MaclaurinSpec) -> [Method; 3] {
    let with = |sketch, weights| MaclaurinSpec { sketch, weights, ..base.clone() };
    [
        Method::real(RADEMACHER, with(SketchKind::Rademacher, Weights::Real)),
        Method::real(SRHT, with(SketchKind::TensorSrht, Weights::Real)),
        Method { name: COMPLEX, spec: with(SketchKind::TensorSrht, Weights::Complex).into(), form: Form::Complex },
    ]
}

fn polynomial() -> Vec<Method> {
    let spherical = |projection| SphericalSpec { degree: DEGREE, a: A, projection, ..SphericalSpec::default() };
    let base = MaclaurinSpec {
        kernel: MaclaurinKernel::Polynomial,
        degree: DEGREE,
        gamma: 2.0 / (A * A),
        coef0: 1.0 - 2.0 / (A * A),
        ..MaclaurinSpec::default()
    };
    let mut list = vec![
        Method::real(SPHERICAL, spherical(Directions::Gaussian)),
        Method::real("spherical, orthogonal", spherical(Directions::Sorf)),
        Method {
            name: "spherical, orthogonal, complex",
            spec: spherical(Directions::Sorf).into(),
            form: Form::Phasors,
        },
    ];
    list.extend(maclaurin(&base));
    list
}

fn gaussian(length_scale: f64) -> Vec<Method> {
    let fourier = |projection, form| FourierSpec {
        projection,
        form,
        length_scale: length_scale.into(),
        ..FourierSpec::default()
    };
    let mut list = vec![
        Method::real(FOURIER, fourier(Directions::Gaussian, Phase::CosSin)),
        Method::real("Fourier, orthogonal", fourier(Directions::Sorf, Phase::CosSin)),
        Method {
            name: "Fourier, orthogonal, complex",
            spec: fourier(Directions::Sorf, Phase::Complex).into(),
            form: Form::Complex,
        },
    ];
    list.extend(maclaurin(&MaclaurinSpec { length_scale: length_scale.into(), ..MaclaurinSpec::default() }));
    list
}

/// The two methods of table D.1.
fn uncentred() -> Vec<Method> {
    polynomial().into_iter().filter(|m| m.name == SPHERICAL || m.name == RADEMACHER).collect()
}

/// What was found for one data set.
struct Found {
    data: &'static str,
    dim: usize,
    task: Task,
    scores: Vec<Scores>,
}

impl Found {
    fn of(&self, method: &str, times: usize, index: usize) -> Option<f64> {
        let score = self.scores.iter().find(|s| s.method == method && s.features == times * self.dim);
        score.and_then(|s| s.values.get(index)).map(|v| v.mean)
    }
}

fn run(run: &Run<'_>) -> Outcome<Findings> {
    let mut findings = Findings::default();
    let mut kernels = Vec::new();
    let polynomial = |_: f64| polynomial();
    let uncentred = |_: f64| uncentred();
    let kinds: [(&str, Prepared, bool, &dyn Fn(f64) -> Vec<Method>); 3] = [
        ("polynomial, centred rows", Prepared::Standardised, true, &polynomial),
        ("polynomial, non-centred rows", Prepared::Raw, true, &uncentred),
        ("Gaussian, centred rows", Prepared::Standardised, false, &gaussian),
    ];
    for (label, prepared, unit, methods) in kinds {
        let mut beside = comparison(format!("{label}, D = 5d: the numbers the thesis has"));
        let mut all = Vec::new();
        for (data, dim, task, in_haste) in SETS {
            if !run.data.has(data) {
                if prepared == Prepared::Raw {
                    findings.remarks.push(format!("{data} is not there and was left out."));
                }
                continue;
            }
            if run.quick && !in_haste {
                continue;
            }
            let wide = dim >= 1024;
            let times = if prepared == Prepared::Raw { &BUDGETS[2..] } else { &BUDGETS };
            // Ten factors of order 5,120 take minutes: with d features all methods are fitted, with 5d those of table D.1.
            let judged = |method: &str, features: usize| match (wide, run.sized(0, 1, 2)) {
                (false, _) | (_, 2) => true,
                (_, 1) => features <= dim || (unit && features == 5 * dim && [SPHERICAL, RADEMACHER].contains(&method)),
                _ => false,
            };
            let some = Validation { features: 3 * dim, rows: 20_000 };
            let setting = Setting {
                data,
                label: label.into(),
                task,
                prepared,
                unit,
                methods,
                features: times.iter().map(|t| t * dim).collect(),
                sizes: Sizes {
                    exact: (run.choose(1000, 5000), run.sized(500, 1000, 5000)),
                    most: (run.choose(4000, usize::MAX), run.sized(2000, if wide { 4000 } else { 20_000 }, usize::MAX)),
                },
                matrices: 1,
                judged: &judged,
                validation: if wide { run.sized(some, some, Validation::ALL) } else { Validation::ALL },
                draws: if wide { run.draws(1, 1, SEEDS) } else { run.draws(3, 3, SEEDS) },
            };
            let (scores, chosen) = compare(run, &setting)?;
            findings.remarks.extend(bounded(data, label, task, &chosen));
            findings.tables.push(table(&format!("{data}, {label}"), task, &scores));
            for score in scores.iter().filter(|s| s.features == 5 * dim) {
                for (metric, index) in [("error", 0), ("likelihood", 3)] {
                    let key = format!("{data} {metric} {label}, 5d, {}", score.method);
                    if let Some(ours) = score.values.get(index).filter(|_| run.published(&key).is_some()) {
                        let what = if index == 0 { "kernel error" } else { "negative log likelihood" };
                        beside.push(
                            run.beside(&key, &format!("{data}, {}, {what}", score.method), ours, |v| Cell::fixed(v, 4)),
                        );
                    }
                }
            }
            all.push(Found { data, dim, task, scores });
        }
        if prepared != Prepared::Raw {
            plots(&mut findings, label, &methods(1.0), &all);
        }
        if !beside.is_empty() {
            findings.tables.insert(kernels.len(), beside);
        }
        kernels.push((label, all));
    }
    remarks(&mut findings, &kernels);
    let mut reduced = Reduced::default();
    reduced.size("seeds", run.draws(3, 3, SEEDS), SEEDS);
    reduced.size("seeds for mnist and fashion-mnist", run.draws(1, 1, SEEDS), SEEDS);
    reduced.size("test rows of the divergence", run.sized(500, 1000, 5000), 5000);
    if run.sized(false, true, false) {
        reduced.without(
            "predictions for at most 20,000 test rows, 4,000 of mnist and fashion-mnist; processes on these two with D = d \
             only, and with 5d for the two methods of table D.1, their regularisation chosen with D = 3d on 20,000 rows",
        );
    }
    findings.remarks.extend(reduced.remark());
    if run.quick {
        findings.remarks.push(
            "A quick run trains on at most 4,000 rows and compares with exact processes of 1,000: likelihoods of larger sets \
             are not those of the thesis."
                .into(),
        );
    }
    Ok(findings)
}

/// What a range that ends too early does to likelihoods: with noise variance `σ²` none is better than `½ ln 2πσ²`.
fn bounded(data: &str, label: &str, task: Task, chosen: &[f64]) -> Option<String> {
    let least = *task.regularisers().first()?;
    if task != Task::Regression || chosen.is_empty() || chosen.iter().any(|noise| *noise > least) {
        return None;
    }
    let bound = 0.5 * (std::f64::consts::TAU * least).ln();
    Some(format!(
        "{data}, {label}: every draw chose the smallest noise variance of the range of the thesis, 2^{}, with which no negative \
         log likelihood is below {bound:.2}; published ones that are lower were not made within this range.",
        least.log2()
    ))
}

fn table(title: &str, task: Task, scores: &[Scores]) -> Table {
    let mut table = Table::new(title)
        .words("features", "features")
        .numbers("count", "D")
        .numbers("error", "kernel error")
        .numbers("kl", "KL")
        .numbers("test", task.error())
        .numbers("likelihood", "neg. log likelihood");
    for score in scores {
        let mut cells = vec![Cell::text(score.method), Cell::count(score.features)];
        for index in 0..4 {
            cells.push(score.values.get(index).map_or_else(
                || Cell::missing("–"),
                |v| match index {
                    0 => Cell::percent(v.mean, 2),
                    1 => Cell::number(v.mean, 4),
                    2 if task == Task::Classification => Cell::percent(v.mean, 2),
                    _ => Cell::fixed(v.mean, 3),
                },
            ));
        }
        table.push(cells);
    }
    table
}

/// One plot per metric and task, data sets side by side, with the most features that have the metric.
fn plots(findings: &mut Findings, label: &str, methods: &[Method], all: &[Found]) {
    let short = label.split(',').next().unwrap_or(label).to_lowercase();
    for (task, of) in [(Task::Regression, "Regression"), (Task::Classification, "Classification")] {
        for (index, metric) in [
            "relative error of the kernel matrix",
            "KL divergence from the exact process",
            task.error(),
            "mean negative log likelihood",
        ]
        .into_iter()
        .enumerate()
        {
            let sets: Vec<(&Found, usize)> = all
                .iter()
                .filter(|f| f.task == task)
                .map(|f| (f, most(f, index)))
                .filter(|(_, most)| *most > 0)
                .collect();
            let mut series = Vec::new();
            for (m, method) in methods.iter().enumerate() {
                let mut line = Series::new(method.name, Style::Scatter, m);
                for (place, (found, features)) in sets.iter().enumerate() {
                    let score = found.scores.iter().find(|s| s.method == method.name && s.features == *features);
                    if let Some(value) = score.and_then(|s| s.values.get(index)) {
                        let x = place as f64 + 0.12 * (m as f64 - 0.5 * (methods.len() as f64 - 1.0));
                        line.push(
                            value.point(x),
                            format!("{}, {}, D = {features}\n{:.4}", method.name, found.data, value.mean),
                        );
                    }
                }
                series.push(line);
            }
            let y = match index {
                0 => Axis::log(metric).in_percent(),
                3 => Axis::linear(metric),
                _ => Axis::log(metric),
            };
            let file = ["error", "kl", "test", "likelihood"][index];
            let names = sets.iter().map(|(f, features)| format!("{} {}d", f.data, features / f.dim)).collect();
            findings.plots.push((
                format!("{short}-{}-{file}", of.to_lowercase()),
                Plot {
                    title: format!("{of}, {label}"),
                    subtitle: "Mean over draws; bars are standard errors. Lower is better.".into(),
                    x: Axis::named("data set and number of features", names),
                    y: if index == 2 && task == Task::Classification { y.in_percent() } else { y },
                    series,
                },
            ));
        }
    }
}

/// The largest number of features with which a metric was measured for all methods; 0 where it was not.
fn most(found: &Found, index: usize) -> usize {
    let lacking = |features| found.scores.iter().any(|s| s.features == features && s.values.len() <= index);
    found.scores.iter().map(|s| s.features).filter(|&features| !lacking(features)).max().unwrap_or(0)
}

/// In how many data sets `a` has a lower value than `b`, among those that have both.
fn ahead(all: &[Found], a: &str, b: &str, index: usize) -> (Vec<&'static str>, usize) {
    let (mut behind, mut count) = (Vec::new(), 0);
    for found in all {
        let times = most(found, index) / found.dim;
        if let (Some(x), Some(y)) = (found.of(a, times, index), found.of(b, times, index)) {
            count += 1;
            if x > y {
                behind.push(found.data);
            }
        }
    }
    (behind, count)
}

/// The trends of the thesis: a table of how often they hold, and sentences about those that do not.
fn remarks(findings: &mut Findings, kernels: &[(&str, Vec<Found>)]) {
    let mut table = Table::new("In how many data sets Maclaurin features are not behind, most features")
        .words("kernel", "kernel")
        .words("metric", "metric")
        .words("features", "features")
        .words("against", "against")
        .numbers("ahead", "not behind")
        .numbers("sets", "of")
        .words("behind", "behind in");
    for (label, all) in kernels.iter().filter(|(label, _)| !label.contains("non-centred")) {
        let base = if label.starts_with("Gaussian") { FOURIER } else { SPHERICAL };
        for (index, metric, claim) in [
            (0, "kernel error", "lower for most data sets"),
            (1, "KL divergence", "lower for most data sets"),
            (2, "prediction error", "lower or the same"),
            (3, "neg. log likelihood", "lower or the same"),
        ] {
            for (a, b) in [
                (SRHT, base.to_owned()),
                (SRHT, format!("{base}, orthogonal")),
                (COMPLEX, format!("{base}, orthogonal, complex")),
            ] {
                let (behind, count) = ahead(all, a, &b, index);
                if count == 0 {
                    continue;
                }
                if 2 * behind.len() >= count {
                    findings.remarks.push(format!(
                        "{label}: the {metric} of {a} is higher than that of {b} in {} of {count} data sets; the thesis has it \
                         {claim}.",
                        behind.len()
                    ));
                }
                table.push(vec![
                    Cell::text(*label),
                    Cell::text(metric),
                    Cell::text(a),
                    Cell::text(b),
                    Cell::count(count - behind.len()),
                    Cell::count(count),
                    Cell::text(behind.join(", ")),
                ]);
            }
        }
        table.start_group();
    }
    findings.tables.insert(0, table);
    let remarks = &mut findings.remarks;
    let find = |label: &str| kernels.iter().find(|(l, _)| *l == label).map(|(_, all)| all);
    if let (Some(centred), Some(raw)) = (find("polynomial, centred rows"), find("polynomial, non-centred rows")) {
        for method in [SPHERICAL, RADEMACHER] {
            let (mut better, mut count) = (Vec::new(), 0);
            for a in centred {
                let Some(b) = raw.iter().find(|b| b.data == a.data) else { continue };
                let times = most(b, 3) / b.dim;
                if let (Some(x), Some(y)) = (a.of(method, times, 3), b.of(method, times, 3)) {
                    count += 1;
                    if x < y {
                        better.push(a.data);
                    }
                }
            }
            let verdict = if 2 * better.len() > count { "" } else { "; the thesis: on most" };
            remarks.push(format!(
                "Centring lowers the negative log likelihood of {method} features on {} of {count} data sets ({}){verdict}.",
                better.len(),
                better.join(", ")
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn likelihoods_that_the_range_of_noises_bounds_are_told() {
        let least = 2f64.powi(-15);
        let told = bounded("naval", "Gaussian", Task::Regression, &[least, least]).unwrap();
        // ½ ln(2π 2^-15) = 0.9189 - 5.1986.
        assert!(told.contains("2^-15") && told.contains("below -4.28;"), "{told}");
        assert_eq!(bounded("naval", "Gaussian", Task::Regression, &[least, 2.0 * least]), None);
        assert_eq!(bounded("mnist", "Gaussian", Task::Classification, &[1e-5]), None);
        assert_eq!(bounded("mnist", "Gaussian", Task::Regression, &[]), None);
    }
}
