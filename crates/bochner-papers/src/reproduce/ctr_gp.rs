//! Thesis, figures 4.8 to 4.10: polynomial sketches and their complex-to-real forms in Gaussian-process classification.

use super::gp::{Found, Method, Setting, Task, compare, side_by_side, table};
use super::*;

/// A data set and its dimension with the constant, padded to a power of two.
const SETS: [(&str, usize); 4] = [("letter", 32), ("mocap", 64), ("mnist", 1024), ("cifar10", 4096)];

fn methods(degree: u32) -> Vec<Method> {
    use {SketchKind as S, Weights as W};
    let method =
        |name, sketch, weights| Method::real(name, PolynomialSpec { degree, coef0: 1.0, ..sketched(sketch, weights) });
    vec![
        method("TensorSketch", S::TensorSketch, W::Real),
        method("TensorSketch, CtR", S::TensorSketch, W::Ctr),
        method("TensorSRHT", S::TensorSrht, W::Real),
        method("TensorSRHT, CtR", S::TensorSrht, W::Ctr),
        method("Rademacher", S::Rademacher, W::Real),
        method("Rademacher, CtR", S::Rademacher, W::Ctr),
        method("Gaussian", S::Gaussian, W::Real),
        method("Gaussian, CtR", S::Gaussian, W::Ctr),
    ]
}

pub(super) fn run(run: &Run<'_>) -> Outcome<Findings> {
    let mut findings = Findings::default();
    let (mut found, mut chosen) = (Vec::new(), Vec::new());
    let wanted: Vec<String> = run.setting("data sets")?;
    let there = run.present(&SETS.map(|(data, _)| data), &mut findings.remarks);
    for (degree, prepared, figure) in [
        (3, Prepared::NonNegative, "figure 4.8"),
        (6, Prepared::NonNegative, "figure 4.9"),
        (6, Prepared::Standardized, "figure 4.10"),
    ] {
        let rows = if prepared == Prepared::NonNegative { "non-negative" } else { "centred" };
        let title = format!("p = {degree}, {rows} rows");
        let mut all = Vec::new();
        for (data, dim) in
            SETS.into_iter().filter(|(data, _)| there.contains(data) && wanted.iter().any(|name| name == data))
        {
            let wide = dim >= 1024;
            let methods = |_: f64| methods(degree);
            // The factors of ten classes with 16,384 features would take hours.
            let judged = match data {
                "cifar10" => run.setting("processes on cifar10")?,
                "mnist" => run.setting("processes on mnist")?,
                _ => true,
            };
            // Dense sketches of 3,072 pixels with 16,384 features are half a minute each.
            let times: Vec<usize> = run.setting(match data {
                "cifar10" => "multiples of d, cifar10",
                "mnist" => "multiples of d, mnist",
                _ => "multiples of d",
            })?;
            let setting = Setting {
                data,
                label: title.clone(),
                task: Task::Classification,
                prepared,
                unit: true,
                methods: &methods,
                features: times.iter().map(|times| times * dim).collect(),
                exact: (run.count("training rows of the exact process")?, run.count("test rows of the divergence")?),
                // With as many rows as the exact process has, one fit serves both comparisons.
                most: match wide {
                    true => {
                        (run.count("training rows, mnist and cifar10")?, run.count("test rows, mnist and cifar10")?)
                    }
                    false => (run.count("training rows")?, run.count("test rows")?),
                },
                // The thesis has one for each of its seeds.
                matrices: run.count(match data {
                    "cifar10" => "matrices of each draw, cifar10",
                    "mnist" => "matrices of each draw, mnist",
                    _ => "matrices of each draw",
                })?,
                judged: &|_, _| judged,
                validation: None,
                draws: if wide { run.count("draws, mnist and cifar10")? } else { run.draws()? },
            };
            let (scores, regularizers) = compare(run, &setting)?;
            let columns = (Task::Classification, if judged { 3 } else { 1 }, true);
            let heading = format!("{data}, {title} ({figure})");
            findings.tables.push(table(&heading, (("sketch", "sketch"), "features"), columns, &scores));
            if let Some(least) = regularizers.iter().copied().reduce(f64::min) {
                let most = regularizers.iter().copied().fold(least, f64::max);
                let range = if least == most { format!("{least}") } else { format!("{least} to {most}") };
                chosen.push(format!("{data}, {title}: {range}"));
            }
            all.push(Found { data, dim, task: Task::Classification, scores });
        }
        for index in 0..3 {
            let places: Vec<_> = all.iter().flat_map(|f| f.measured(index).into_iter().map(move |d| (f, d))).collect();
            let (name, plot) = side_by_side(&title, (Task::Classification, index), &methods(1), &places);
            findings.plot(format!("p{degree}-{rows}-{name}"), plot);
        }
        found.push((title, all));
    }
    findings.remark(format!("α by validation: {}.", chosen.join("; ")));
    trends(&mut findings, &found);
    Ok(findings)
}

/// The trends of the thesis: ratios of errors, and a sentence for each claim.
fn trends(findings: &mut Findings, found: &[(String, Vec<Found>)]) {
    let mut table = Table::new("CtR-TensorSRHT against others, most features: ratios of errors")
        .words("data", "data set")
        .words("kernel", "kernel and rows")
        .column("real", "kernel error / TensorSRHT", Show::Fixed(2))
        .column("sketch", "kernel error / TensorSketch", Show::Fixed(2))
        .column("kl_real", "KL / TensorSRHT", Show::Fixed(2))
        .column("kl_sketch", "KL / TensorSketch", Show::Fixed(2))
        .words("lowest", "lowest kernel error");
    let mut ratios = BTreeMap::new();
    let (mut behind, mut lowest) = (Vec::new(), Vec::new());
    for (title, all) in found {
        for found in all {
            let (data, most) = (found.data, found.most(0));
            let value = |name: &str, index: usize| found.of(name, most, index);
            let ratio = |other: &str, index| value(CTR, index).zip(value(other, index)).map(|(a, b)| a.mean / b.mean);
            let errors = methods(1).into_iter().filter_map(|m| Some((m.name, value(m.name, 0)?.mean)));
            let best = errors.min_by(|a, b| a.1.total_cmp(&b.1)).map_or("", |(name, _)| name);
            let [real, sketch] = ["TensorSRHT", "TensorSketch"].map(|other| [0, 1].map(|index| ratio(other, index)));
            table.add(&[&data, title, &real[0], &sketch[0], &real[1], &sketch[1], &best]);
            for real in ["TensorSRHT", "Rademacher", "Gaussian"] {
                let Some((a, b)) = value(&format!("{real}, CtR"), 0).zip(value(real, 0)) else { continue };
                // Twice the standard error of the difference: less than that may be chance.
                let error = |s: &Statistic| s.deviation.powi(2) / s.count as f64;
                if a.mean - b.mean > 2.0 * (error(&a) + error(&b)).sqrt() {
                    behind.push(format!("{real} on {data}, {title} ({:.2} times)", a.mean / b.mean));
                }
            }
            if title.starts_with("p = 3") && best != CTR {
                lowest.push(format!("{best} on {data}"));
            }
            ratios.extend(real[0].map(|ratio| ((title.as_str(), data), ratio)));
        }
    }
    findings.tables.insert(0, table);
    let remarks = &mut findings.remarks;
    remarks.push(match &behind[..] {
        [] => "No complex-to-real sketch has a larger kernel error than its real form beyond what may be chance, as in the thesis.".into(),
        list => {
            format!("Complex-to-real sketches are behind their real forms, unlike in the thesis: {}.", list.join("; "))
        }
    });
    remarks.push(match &lowest[..] {
        [] => "For p = 3 CtR-TensorSRHT has the lowest kernel error everywhere, as in the thesis.".into(),
        list => format!("For p = 3 the thesis has CtR-TensorSRHT lowest everywhere; here it is {}.", list.join(", ")),
    });
    for (data, _) in SETS {
        let of = |kind: &str| ratios.get(&(&*format!("p = {kind} rows"), data)).copied();
        let [Some(three), Some(six), Some(centered)] = ["3, non-negative", "6, non-negative", "6, centred"].map(of)
        else {
            continue;
        };
        remarks.push(format!(
            "{data}: the kernel error of CtR-TensorSRHT is {three:.2} times that of real TensorSRHT for p = 3, {six:.2} times for \
             p = 6, {centered:.2} times for p = 6 on centred rows; the advantage {} with p and {} by centring, {} the thesis.",
            if six < three { "grows" } else { "does not grow" },
            if centered > six { "shrinks" } else { "does not shrink" },
            if six < three && centered > six { "as in" } else { "unlike in" }
        ));
    }
    remarks.push(
        "cifar10, where it is there, is compared by kernel matrices only: factors for ten classes and 16,384 features would take \
         hours."
            .into(),
    );
}
