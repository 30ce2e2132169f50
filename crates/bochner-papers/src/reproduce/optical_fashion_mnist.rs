//! Optical random features, figure 2: test error on Fashion-MNIST against the number of features.

use super::classify::{Chosen, Family, describe, exact, refine, refine_exact, search, test};
use super::{Experiment, Findings, Run, Statistic, comparison};
use bochner::feature::{FourierSpec, OpticalSpec, OrthoProjectionSpec, Spec};
use bochner::tune::grid;
use bochner::words;
use bochner_report::plot::{Axis, Plot, Point, Series, Style};
use bochner_report::table::{Cell, Table};
use bochner_table::failure::Outcome;
use std::collections::BTreeMap;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "optical-fashion-mnist",
    what: "test error of ridge classifiers on simulated optical and Fourier features",
    source: "optical, figure 2; inputs binarised; threshold, bias or length scale and penalty by search on \
             training rows that are held out",
    needs: &["fashion-mnist"],
    minutes: 150.0,
    run,
};

/// Bits of the camera where there is one.
const CAMERA_BITS: u32 = 8;

fn run(run: &Run<'_>) -> Outcome<Findings> {
    let (train, held) = run.data.images("fashion-mnist")?;
    let train = train.sample(run.choose(6000, 60_000), 1);
    let sizes: &[usize] = run.choose(&[500, 1000, 2000, 4000][..], &[1000, 10_000, 20_000, 50_000, 100_000][..]);
    let thresholds: &[f32] = run.choose(&[10.0, 40.0][..], &[0.0, 10.0, 20.0, 40.0][..]);
    let mut table = comparison(format!("Test error in percent, {} training rows", words::count(train.rows.nrows())));
    let mut chosen_table = Table::new("Chosen on validation rows")
        .words("features", "features")
        .words("penalty_for", "penalty for")
        .numbers("threshold", "threshold")
        .words("parameter", "parameter")
        .numbers("penalty", "penalty / mean |φ(x)|²")
        .numbers("validation_error", "validation error");
    let mut effort = Table::new("Fits")
        .words("features", "features")
        .words("size", "D")
        .numbers("steps", "steps")
        .numbers("residual", "residual")
        .numbers("seconds", "time");
    let mut series = Vec::new();
    let mut errors: BTreeMap<(String, usize), f64> = BTreeMap::new();
    let mut limits: BTreeMap<String, f64> = BTreeMap::new();
    let mut versions = Vec::new();
    for (index, family) in families()?.into_iter().enumerate() {
        let name = family.name.clone();
        let few = search(run, &family, thresholds, &train, run.choose(1000, 2000))?;
        if name == LINEAR {
            chosen_table.push(choice(&name, "all", &few));
            // As many directions as there are pixels: the features are the pixels, turned.
            let found = test(run, &name, &few, train.rows.ncols(), &train, &held)?;
            table.push(run.beside(&name, &name, &Statistic::of(&[found.error]), |v| Cell::fixed(v, 2)));
            table.start_group();
            continue;
        }
        let many = if run.quick { few.clone() } else { refine(run, &name, &few, &train, 10_000)? };
        let limit = refine_exact(run, &name, &many, &train, run.choose((4000, 1000), (10_000, 12_000)))?;
        if !run.quick {
            chosen_table.push(choice(&name, "D = 1,000", &few));
        }
        chosen_table.push(choice(&name, run.choose("all D", "D to 20,000"), &many));
        chosen_table.push(choice(&name, run.choose("exact kernel", "larger D, exact kernel"), &limit));
        chosen_table.start_group();
        let ideal = Version { name, colour: index, camera: false, few, many, limit };
        let seen = ideal.through_camera();
        versions.push(ideal);
        versions.extend(seen);
    }
    // Few features first, for all maps: a run that ends early leaves numbers that can be compared.
    for &features in sizes.iter().filter(|&&d| d <= 20_000) {
        for version in &versions {
            test(run, &version.name, version.choice(features, run.quick), features, &train, &held)?;
        }
    }
    for version in versions.iter().filter(|v| !v.camera) {
        exact(run, &version.name, &version.limit, &train, &held)?;
    }
    for version in &versions {
        let name = &version.name;
        // Short, so that the figure keeps its width.
        let label = name.replace("simulated ", "").replace("8-bit ", "");
        let mut line = Series::new(label, Style::Marks, version.colour);
        // The camera is a matter of accuracy: its largest fits would say no more than those before them.
        for &features in sizes.iter().filter(|&&d| !version.camera || d <= 20_000) {
            let found = test(run, name, version.choice(features, run.quick), features, &train, &held)?;
            let what = format!("{name}, D = {}", words::count(features));
            let key = format!("{name} D={features}");
            table.push(run.beside(&key, &what, &Statistic::of(&[found.error]), |v| Cell::fixed(v, 2)));
            effort.push(effort_row(name, &words::count(features), &found));
            line.push(Point::new(features as f64, 0.01 * found.error), format!("{what}\n{:.2} %", found.error));
            errors.insert((name.clone(), features), found.error);
        }
        series.push(line);
        if !version.camera {
            let found = exact(run, name, &version.limit, &train, &held)?;
            limits.insert(name.clone(), found.error);
            let what = format!("{name}, exact kernel");
            let statistic = Statistic::of(&[found.error]);
            table.push(run.beside(&format!("{name} exact"), &what, &statistic, |v| Cell::fixed(v, 2)));
            effort.push(effort_row(name, "exact kernel", &found));
            let mut dashed = Series::new(&*what, Style::Dashed, version.colour).unlabelled();
            for end in [sizes[0], sizes[sizes.len() - 1]] {
                dashed.push(Point::new(end as f64, 0.01 * found.error), format!("{what}\n{:.2} %", found.error));
            }
            series.push(dashed);
        }
        table.start_group();
        effort.start_group();
    }
    let plot = Plot {
        title: "Test error against number of features".into(),
        subtitle:
            "Ridge classifier on binarised Fashion-MNIST, one draw per number of features. Dashed: exact kernels."
                .into(),
        x: Axis::log("number of features D").with_ticks(sizes.iter().map(|&s| s as f64).collect()),
        y: Axis::linear("test error").in_percent(),
        series,
    };
    let mut remarks = remarks(sizes, &errors, &limits);
    if run.quick {
        remarks.push(format!(
            "A quick run trains on {} of 60,000 rows: its errors are higher than the paper's.",
            words::count(train.rows.nrows())
        ));
    }
    Ok(Findings { tables: vec![table, chosen_table, effort], plots: vec![("error".into(), plot)], remarks })
}

const LINEAR: &str = "no random features";
const SQUARE: &str = "simulated m = 2";
const FOURTH: &str = "simulated m = 4";
const FOURIER: &str = "Fourier (Gaussian)";

/// Maps and the values of their hyperparameters that are tried.
fn families() -> Outcome<Vec<Family>> {
    let optical = |name: &str, exponent: f64| -> Outcome<Family> {
        let base = OpticalSpec { exponent, ..OpticalSpec::default() };
        let candidates = grid(&base.into(), &[("bias", [1.0, 16.0, 64.0].map(Into::into).to_vec())])?;
        Ok(Family { name: name.into(), candidates, intercept: false })
    };
    let scales = [-1, 0, 1, 2].map(|e| (8.0 * 2f64.powf(0.5 * f64::from(e))).into()).to_vec();
    Ok(vec![
        optical(SQUARE, 2.0)?,
        optical(FOURTH, 4.0)?,
        Family {
            name: FOURIER.into(),
            candidates: grid(&FourierSpec::default().into(), &[("length_scale", scales)])?,
            intercept: false,
        },
        Family { name: LINEAR.into(), candidates: vec![OrthoProjectionSpec::default().into()], intercept: true },
    ])
}

/// A map with its hyperparameters for few features, for many, and for so many that the kernel is reached.
struct Version {
    name: String,
    colour: usize,
    camera: bool,
    few: Chosen,
    many: Chosen,
    limit: Chosen,
}

impl Version {
    fn choice(&self, features: usize, quick: bool) -> &Chosen {
        match features {
            d if d <= 2000 || quick => &self.few,
            d if d <= 20_000 => &self.many,
            _ => &self.limit,
        }
    }

    /// The same light with the same hyperparameters, read by a camera.
    fn through_camera(&self) -> Option<Version> {
        let seen = |chosen: &Chosen| match &chosen.spec {
            Spec::Optical(spec) => {
                let spec = OpticalSpec { camera_bits: Some(CAMERA_BITS), ..spec.clone() };
                Some(Chosen { spec: spec.into(), ..chosen.clone() })
            }
            _ => None,
        };
        Some(Version {
            name: format!("{}, {CAMERA_BITS}-bit camera", self.name),
            colour: self.colour + 3,
            camera: true,
            few: seen(&self.few)?,
            many: seen(&self.many)?,
            limit: seen(&self.limit)?,
        })
    }
}

fn choice(name: &str, of: &str, chosen: &Chosen) -> Vec<Cell> {
    vec![
        Cell::text(name),
        Cell::text(of),
        Cell::number(f64::from(chosen.threshold), 3),
        Cell::text(describe(&chosen.spec)),
        Cell::number(chosen.ratio, 2),
        Cell::percent(chosen.loss, 2),
    ]
}

fn effort_row(name: &str, size: &str, found: &super::classify::Tested) -> Vec<Cell> {
    vec![
        Cell::text(name),
        Cell::text(size),
        Cell::count(found.steps as usize),
        if found.residual > 0.0 { Cell::number(found.residual, 2) } else { Cell::missing("–") },
        Cell::duration(found.seconds),
    ]
}

/// What the paper says about its figure, held against the numbers found.
fn remarks(sizes: &[usize], errors: &BTreeMap<(String, usize), f64>, limits: &BTreeMap<String, f64>) -> Vec<String> {
    let at = |name: &str, d: usize| errors.get(&(name.to_owned(), d)).copied();
    let mut found = Vec::new();
    let ahead: Vec<usize> =
        sizes.iter().copied().filter(|&d| at(FOURTH, d).zip(at(SQUARE, d)).is_some_and(|(a, b)| a < b)).collect();
    let listed = ahead.iter().map(|&d| words::count(d)).collect::<Vec<_>>().join(", ");
    found.push(match ahead.is_empty() {
        true => "m = 4 is ahead of m = 2 at none of these numbers of features (paper: from D = 20,000).".into(),
        false => format!("m = 4 is ahead of m = 2 at D = {listed} (paper: from 20,000)."),
    });
    if let Some(&last) = sizes.last() {
        for (name, limit) in limits {
            if let Some(error) = at(name, last) {
                let distance = error - limit;
                found.push(format!(
                    "{name}: {error:.2} % at D = {} is {:.2} points {} the exact kernel's {limit:.2} %.",
                    words::count(last),
                    distance.abs(),
                    if distance > 0.0 { "above" } else { "below" },
                ));
            }
        }
    }
    for name in [SQUARE, FOURTH] {
        let with = format!("{name}, {CAMERA_BITS}-bit camera");
        let costs: Vec<f64> =
            sizes.iter().filter_map(|&d| at(&with, d).zip(at(name, d)).map(|(with, without)| with - without)).collect();
        if !costs.is_empty() {
            let cost = Statistic::of(&costs);
            found.push(format!(
                "{name}: an {CAMERA_BITS}-bit camera changes the error by {:+.2} points on average over {} sizes.",
                cost.mean, cost.count
            ));
        }
    }
    found
}
