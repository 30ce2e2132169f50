//! Thesis, figures 5.4, 5.5, D.2 to D.5 and table D.1: optimised Maclaurin features in Gaussian processes.

use super::gp::{Form, Found, Method, Setting, Task, compare, side_by_side, table};
use super::*;
use bochner::feature::{MaclaurinKernel, SphericalSpec};
use bochner::variance::Form as Phase;

/// Data set, padded dimension and task.
const SETS: [(&str, usize, Task); 14] = {
    use Task::{Classification as C, Regression as R};
    [
        ("boston", 16, R),
        ("concrete", 8, R),
        ("energy", 8, R),
        ("kin8nm", 8, R),
        ("naval", 16, R),
        ("powerplant", 4, R),
        ("protein", 16, R),
        ("yacht", 8, R),
        ("cod_rna", 8, C),
        ("covertype", 64, C),
        ("fashion-mnist", 1024, C),
        ("magic", 16, C),
        ("mnist", 1024, C),
        ("mocap", 64, C),
    ]
};

const DEGREE: u32 = 20;
const A: f64 = 4.0;
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
        ..optimized()
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
    list.extend(maclaurin(&MaclaurinSpec { length_scale: length_scale.into(), ..optimized() }));
    list
}

/// The two methods of table D.1.
fn uncentered() -> Vec<Method> {
    polynomial().into_iter().filter(|m| m.name == SPHERICAL || m.name == RADEMACHER).collect()
}

/// How a kernel is called, how its rows are prepared, whether they have unit length, and the methods for a length scale.
type Kind<'a> = (&'a str, Prepared, bool, &'a dyn Fn(f64) -> Vec<Method>);

pub(super) fn run(run: &Run<'_>) -> Outcome<Findings> {
    let mut findings = Findings::default();
    let mut kernels = Vec::new();
    let wanted: Vec<String> = run.setting("data sets")?;
    let there = run.present(&SETS.map(|(data, ..)| data), &mut findings.remarks);
    let processes: String = run.setting("processes on mnist and fashion-mnist")?;
    let kinds: [Kind<'_>; 3] = [
        ("polynomial, centred rows", Prepared::Standardized, true, &|_| polynomial()),
        ("polynomial, non-centred rows", Prepared::Raw, true, &|_| uncentered()),
        ("Gaussian, centred rows", Prepared::Standardized, false, &gaussian),
    ];
    let (labels, names): (Vec<String>, Vec<String>) = (run.setting("kernels and rows")?, run.setting("features")?);
    for (label, prepared, unit, methods) in kinds.into_iter().filter(|kind| labels.iter().any(|label| label == kind.0))
    {
        // The first one chooses the regularisation of all, and stays.
        let methods = |length_scale: f64| -> Vec<Method> {
            let all = methods(length_scale).into_iter().enumerate();
            let wanted = |name: &str| names.iter().any(|wanted| wanted == name);
            all.filter(|(index, method)| *index == 0 || wanted(method.name)).map(|(_, method)| method).collect()
        };
        let mut beside = comparison(format!("{label}, D = 5d: the numbers the thesis has"));
        let mut all = Vec::new();
        for (data, dim, task) in
            SETS.into_iter().filter(|set| there.contains(&set.0) && wanted.iter().any(|w| w == set.0))
        {
            let wide = dim >= 1024;
            let times = if prepared == Prepared::Raw { &BUDGETS[2..] } else { &BUDGETS };
            // Ten factors of order 5,120 take minutes: with d features all methods are fitted, with 5d those of table D.1.
            let judged = |method: &str, features: usize| match processes.as_str() {
                _ if !wide => true,
                "every method" => true,
                "D = d and table D.1" => {
                    features <= dim || (unit && features == 5 * dim && [SPHERICAL, RADEMACHER].contains(&method))
                }
                _ => false,
            };
            let chosen_with = run.count("rows that choose the regularisation, mnist and fashion-mnist")?;
            let test_rows = if wide { "test rows, mnist and fashion-mnist" } else { "test rows" };
            let setting = Setting {
                data,
                label: label.into(),
                task,
                prepared,
                unit,
                methods: &methods,
                features: times.iter().map(|t| t * dim).collect(),
                exact: (run.count("training rows of the exact process")?, run.count("test rows of the divergence")?),
                most: (run.count("training rows")?, run.count(test_rows)?),
                matrices: 1,
                judged: &judged,
                validation: (wide && chosen_with < usize::MAX).then_some((3 * dim, chosen_with)),
                draws: if wide { run.count("draws, mnist and fashion-mnist")? } else { run.draws()? },
            };
            let (scores, chosen) = compare(run, &setting)?;
            findings.remarks.extend(bounded(data, label, task, &chosen));
            if data == "energy" && unit {
                findings.remarks.extend(energy(run, label)?);
            }
            let title = format!("{data}, {label}");
            findings.tables.push(table(&title, (("features", "features"), "count"), (task, 4, false), &scores));
            for score in scores.iter().filter(|s| s.features == 5 * dim) {
                for (metric, what, index) in
                    [("error", "kernel error", 0), ("likelihood", "negative log likelihood", 3)]
                {
                    let key = format!("{data} {metric} {label}, 5d, {}", score.method);
                    if let Some(ours) = score.values.get(index).filter(|_| run.published(&key).is_some()) {
                        run.beside(
                            &mut beside,
                            Show::Fixed(4),
                            &key,
                            &format!("{data}, {}, {what}", score.method),
                            ours,
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
    if run.quick {
        findings.remark(
            "A quick run trains on at most 4,000 rows and compares with exact processes of 1,000: likelihoods of larger sets \
             are not those of the thesis.",
        );
    }
    Ok(findings)
}

/// What a range that ends too early does to likelihoods: with noise variance `σ²` none is better than `½ ln 2πσ²`.
fn bounded(data: &str, label: &str, task: Task, chosen: &[f64]) -> Option<String> {
    let least = *task.regularizers().first()?;
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

/// What the published likelihood of energy may be: worse than that of a constant, it fits a noise variance of the upper end of
/// the range, whatever is predicted.
fn energy(run: &Run<'_>, label: &str) -> Outcome<Option<String>> {
    let key = |method: &str| format!("energy likelihood {label}, 5d, {method}");
    let Some((spherical, maclaurin)) = run.published(&key(SPHERICAL)).zip(run.published(&key(RADEMACHER))) else {
        return Ok(None);
    };
    let (train, test) = run.data.split("energy", run.seed)?;
    let targets: Vec<f64> = train.targets.iter().chain(&test.targets).map(|y| f64::from(*y)).collect();
    let variance = Statistic::of(&targets).deviation.powi(2);
    let at = |noise: f64| 0.5 * ((std::f64::consts::TAU * noise).ln() + variance / noise);
    let noises = Task::Regression.regularizers();
    let nearest = noises.iter().copied().filter(|noise| *noise > variance);
    let nearest = nearest.min_by(|a, b| (at(*a) - spherical).abs().total_cmp(&(at(*b) - spherical).abs()));
    Ok(nearest.map(|noise| {
        format!(
            "energy, {label}: the published {spherical} and {maclaurin} are worse than the {:.2} of a constant with the variance of the \
             targets, for which neither target of the data set nor another unit of it accounts. A noise variance of 2^{} gives {:.2} \
             whatever is predicted: a regularisation chosen far too large may be the reason; nothing else that was tried comes near.",
            at(variance),
            noise.log2(),
            at(noise)
        )
    }))
}

/// One plot per metric and task, data sets side by side, with the most features that have the metric.
fn plots(findings: &mut Findings, label: &str, methods: &[Method], all: &[Found]) {
    let short = label.split(',').next().unwrap_or(label).to_lowercase();
    for (task, of) in [(Task::Regression, "Regression"), (Task::Classification, "Classification")] {
        for index in 0..4 {
            let sets = all.iter().filter(|f| f.task == task).map(|f| (f, f.most(index)));
            let places: Vec<(&Found, usize)> = sets.filter(|(_, most)| *most > 0).collect();
            let (file, plot) = side_by_side(&format!("{of}, {label}"), (task, index), methods, &places);
            findings.plot(format!("{short}-{}-{file}", of.to_lowercase()), plot);
        }
    }
}

/// In which data sets `a` has a higher value than `b`, and how many have both.
fn behind(all: &[Found], a: &str, b: &str, index: usize) -> (Vec<&'static str>, usize) {
    let both = |found: &Found| {
        let most = found.most(index);
        Some((found.data, found.of(a, most, index)?.mean, found.of(b, most, index)?.mean))
    };
    let found: Vec<_> = all.iter().filter_map(both).collect();
    (found.iter().filter(|(_, a, b)| a > b).map(|(data, ..)| *data).collect(), found.len())
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
            for (a, kind) in [(SRHT, ""), (SRHT, ", orthogonal"), (COMPLEX, ", orthogonal, complex")] {
                let b = format!("{base}{kind}");
                let (behind, count) = behind(all, a, &b, index);
                if count == 0 {
                    continue;
                }
                if 2 * behind.len() >= count {
                    findings.remark(format!(
                        "{label}: the {metric} of {a} is higher than that of {b} in {} of {count} data sets; the thesis has it \
                         {claim}.",
                        behind.len()
                    ));
                }
                table.add(&[label, &metric, &a, &b, &(count - behind.len()), &count, &behind.join(", ")]);
            }
        }
        table.start_group();
    }
    findings.tables.insert(0, table);
    let find = |label: &str| kernels.iter().find(|(l, _)| *l == label).map(|(_, all)| all);
    let (Some(centered), Some(raw)) = (find("polynomial, centred rows"), find("polynomial, non-centred rows")) else {
        return;
    };
    for method in [SPHERICAL, RADEMACHER] {
        let both = |a: &Found| {
            let b = raw.iter().find(|b| b.data == a.data)?;
            let most = b.most(3);
            Some((a.data, a.of(method, most, 3)?.mean, b.of(method, most, 3)?.mean))
        };
        let found: Vec<_> = centered.iter().filter_map(both).collect();
        let better: Vec<&str> = found.iter().filter(|(_, a, b)| a < b).map(|(data, ..)| *data).collect();
        let verdict = if 2 * better.len() > found.len() { "" } else { "; the thesis: on most" };
        findings.remark(format!(
            "Centring lowers the negative log likelihood of {method} features on {} of {} data sets ({}){verdict}.",
            better.len(),
            found.len(),
            better.join(", ")
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_to_be_out_of_reach_is() {
        let least = Task::Regression.regularizers()[0];
        let bound = 0.5 * (std::f64::consts::TAU * least).ln();
        let mut seen = 0;
        for group in published::groups().iter().filter(|g| g.apart.as_ref().is_some_and(|why| why.contains("2^-15"))) {
            assert!(group.apart.as_ref().unwrap().contains(&format!("{bound:.2}")), "{group:?}");
            assert!(group.values.values().all(|value| *value < bound), "{group:?}");
            seen += group.values.len();
        }
        assert_eq!(seen, 4);
    }

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
