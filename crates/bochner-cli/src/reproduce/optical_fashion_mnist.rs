//! Optical random features, figure 2: test error on Fashion-MNIST against the number of features.

use super::data::Part;
use super::{Experiment, Findings, Run, comparison};
use crate::failure::Outcome;
use crate::plot::{Axis, Plot, Point, Series, Style};
use crate::table::Cell;
use bochner::feature::{Describe, FourierSpec, OpticalProjection, OpticalSpec, Spec};
use bochner::metrics::error_rate;
use bochner::model::{Fit, Ridge, RidgeClassifier};
use bochner::random::Seed;
use bochner::rows::InMemory;
use bochner::tune::{Search, Split, Task, grid};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "optical-fashion-mnist",
    what: "test error of ridge classifiers on simulated optical and Fourier features",
    source: "optical, figure 2; pixels above 10 become 1; hyperparameters by search on a fifth of the training rows",
    needs: &["fashion-mnist"],
    minutes: 90.0,
    run,
};

/// Features with which hyperparameters are searched.
const SEARCH_FEATURES: usize = 1000;

fn run(run: &Run<'_>) -> Outcome<Findings> {
    let (train, test) = run.data.images("fashion-mnist")?;
    let train = binary(train.sample(run.choose(6000, 60_000), 1));
    let test = binary(test.sample(run.choose(2000, 10_000), 2));
    let sizes: &[usize] = run.choose(&[1000, 2000][..], &[1000, 10_000, 20_000, 50_000, 100_000][..]);
    let mut table = comparison(format!("Test error in percent, {} training rows", train.rows.nrows()));
    let mut chosen = Vec::new();
    let mut series = Vec::new();
    for (index, (name, candidates)) in families()?.into_iter().enumerate() {
        let (spec, penalty) = search(run, name, &candidates, &train)?;
        chosen.push(format!("{name}: {}, penalty {penalty}.", describe(&spec)));
        let mut line = Series::new(name, Style::Marks, index);
        for &features in sizes {
            let key = format!("{name} D={features}");
            let found = run.values(&format!("{key} n={} {} {penalty}", train.rows.nrows(), describe(&spec)), || {
                Ok(vec![test_error(&spec.redrawn(features, run.seed), penalty, &train, &test)?])
            })?;
            let found = super::Statistic::of(&found);
            table.push(run.beside(&key, &format!("{name}, D = {features}"), &found, |v| Cell::fixed(v, 2)));
            line.push(
                Point::new(features as f64, found.mean / 100.0),
                format!("{name}, D = {features}\n{:.2} %", found.mean),
            );
        }
        table.start_group();
        series.push(line);
    }
    let plot = Plot {
        title: "Test error against number of features".into(),
        subtitle: "Ridge classifier on Fashion-MNIST, one draw per number of features.".into(),
        x: Axis::log("number of features D").with_ticks(sizes.iter().map(|&s| s as f64).collect()),
        y: Axis::linear("test error").in_percent(),
        series,
    };
    let mut remarks = vec![format!("Hyperparameters found on validation rows: {}", chosen.join(" "))];
    if run.quick {
        remarks.push("A quick run trains on 6,000 of 60,000 rows: its errors are higher than the paper's.".into());
    }
    Ok(Findings { tables: vec![table], plots: vec![("error".into(), plot)], remarks })
}

/// Maps and the values of their hyperparameters that are tried.
fn families() -> Outcome<Vec<(&'static str, Vec<Spec>)>> {
    let optical = |exponent: f64, camera_bits| {
        let base = OpticalSpec { exponent, camera_bits, projection: OpticalProjection::Auto, ..OpticalSpec::default() };
        grid(&base.into(), &[("bias", [1.0, 16.0, 64.0].map(Into::into).to_vec())])
    };
    let scales = [6.0, 8.0, 11.0, 16.0].map(Into::into).to_vec();
    Ok(vec![
        ("simulated m = 2", optical(2.0, None)?),
        ("simulated m = 4", optical(4.0, None)?),
        ("simulated m = 2, 8-bit camera", optical(2.0, Some(8))?),
        ("Fourier (Gaussian)", grid(&FourierSpec::default().into(), &[("length_scale", scales)])?),
    ])
}

fn binary(part: Part) -> Part {
    Part { rows: part.rows.mapv(|v| f32::from(u8::from(v > 10.0))), ..part }
}

fn describe(spec: &Spec) -> String {
    match spec {
        Spec::Optical(spec) => format!("bias {}", spec.bias),
        Spec::Fourier(spec) => format!("length scale {:?}", spec.length_scale),
        _ => String::new(),
    }
}

/// The map and the penalty with the smallest validation error.
fn search(run: &Run<'_>, name: &str, candidates: &[Spec], train: &Part) -> Outcome<(Spec, f64)> {
    let part = train.sample(run.choose(6000, 20_000), 4);
    let double = super::data::double(part.rows.view());
    let mut resolved = Vec::with_capacity(candidates.len());
    for spec in candidates {
        resolved.push(spec.redrawn(SEARCH_FEATURES, run.seed).resolve(double.view())?);
    }
    let best = run.values(&format!("search {name} rows={} maps={}", part.rows.nrows(), resolved.len()), || {
        let search = Search {
            penalties: (-6..=9).map(|e| 10f64.powi(e)).collect(),
            intercept: false,
            seed: Seed::new(run.seed),
            ..Search::new(Task::Classification, Split::HeldOut(0.2))
        };
        let mut source = InMemory::new(part.rows.view(), part.targets.view())?;
        let trials = search.run(&resolved, &mut source, &mut |_| Ok(()))?;
        let map = trials.best / search.penalties.len();
        Ok(vec![map as f64, trials.best().penalty])
    })?;
    // The penalty stands beside a Gram matrix that grows with the number of rows.
    Ok((candidates[best[0] as usize].clone(), best[1] * train.rows.nrows() as f64 / (0.8 * part.rows.nrows() as f64)))
}

fn test_error(spec: &Spec, penalty: f64, train: &Part, test: &Part) -> Outcome<f64> {
    let sample = super::data::double(train.sample(1000, 5).rows.view());
    let map = spec.resolve(sample.view())?.build::<f32>(train.rows.ncols())?;
    let ridge = Ridge::new(map, penalty)?.with_intercept(false);
    let model = RidgeClassifier::new(ridge).fit(&mut InMemory::new(train.rows.view(), train.targets.view())?)?;
    Ok(100.0 * error_rate(&test.classes(), &model.predict_classes(test.rows.view())?)?)
}
