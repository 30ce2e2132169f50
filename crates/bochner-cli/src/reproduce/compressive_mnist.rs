//! Compressive random features, figure 2: accuracy and construction time on MNIST.

use super::data::Part;
use super::{Experiment, Findings, Run, comparison};
use crate::failure::Outcome;
use crate::plot::{Axis, Plot, Point, Series, Style};
use crate::table::Cell;
use bochner::feature::{CompressiveSpec, Describe, Directions, FeatureMap, FourierSpec, Spec};
use bochner::metrics::error_rate;
use bochner::model::{Fit, Svm};
use bochner::preprocess::LengthScale;
use bochner::rows::InMemory;
use std::time::Instant;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "compressive-mnist",
    what: "accuracy of a linear SVM and construction time, typical and compressive random features",
    source: "compressive, figure 2 (b) and (d); pixels in [0, 1], sigma = 10, C = 1",
    needs: &["mnist"],
    minutes: 150.0,
    run,
};

const SIGMA: f64 = 10.0;

fn run(run: &Run<'_>) -> Outcome<Findings> {
    let (train, test) = run.data.images("mnist")?;
    let scaled = |part: Part| Part { rows: part.rows / 255.0, ..part };
    let (train, test) =
        (scaled(train).sample(run.choose(6000, 60_000), 1), scaled(test).sample(run.choose(2000, 10_000), 2));
    let sizes: &[usize] = run.choose(&[100, 500, 1000][..], &[100, 500, 1000, 2000, 4000][..]);
    let mut accuracy = comparison(format!("Accuracy in percent, {} training rows", train.rows.nrows()));
    let mut times = comparison(format!("Seconds to make the features of {} rows", train.rows.nrows()));
    let mut series = Vec::new();
    for (index, measurements) in [None, Some(50), Some(100), Some(200), Some(300)].into_iter().enumerate() {
        let name = measurements.map_or("typical".to_owned(), |m| format!("m = {m}"));
        let mut line = Series::new(&*name, Style::Marks, index);
        for &frequencies in sizes {
            let spec = spec(measurements, frequencies);
            let key = format!("{name} M={frequencies}");
            let configuration = format!("{key} n={}", train.rows.nrows());
            let found = run.per_seed(&configuration, |seed| {
                accuracy_of(&spec.redrawn(spec.n_components(), seed), &train, &test)
            })?;
            accuracy.push(run.beside(&format!("accuracy {key}"), &format!("{name}, M = {frequencies}"), &found, |v| {
                Cell::fixed(v, 2)
            }));
            let seconds = run.per_seed(&format!("time {configuration}"), |seed| {
                let map = spec.redrawn(spec.n_components(), seed).build::<f32>(train.rows.ncols())?;
                let start = Instant::now();
                map.transform(train.rows.view())?;
                Ok(start.elapsed().as_secs_f64())
            })?;
            times.push(run.beside(&format!("time {key}"), &format!("{name}, M = {frequencies}"), &seconds, |v| {
                Cell::number(v, 3)
            }));
            let tip = format!("{name}, M = {frequencies}\n{:.2} %", found.mean);
            line.push(Point::new(frequencies as f64, found.mean / 100.0), tip);
        }
        accuracy.start_group();
        times.start_group();
        series.push(line);
    }
    let plot = Plot {
        title: "Accuracy against number of features".into(),
        subtitle: "Linear SVM on random features of MNIST.".into(),
        x: Axis::log("number of random features M").with_ticks(sizes.iter().map(|&s| s as f64).collect()),
        y: Axis::linear("test accuracy").in_percent(),
        series,
    };
    let mut remarks = vec![
        "The paper's times are those of an Intel Xeon E5-2620 and include the random projection, as ours do.".into(),
    ];
    if run.quick {
        remarks.push("A quick run trains on 6,000 of 60,000 rows: its accuracies are lower than the paper's.".into());
    }
    Ok(Findings { tables: vec![accuracy, times], plots: vec![("accuracy".into(), plot)], remarks })
}

/// M cosine features with random offsets, as the paper makes them.
fn spec(measurements: Option<usize>, frequencies: usize) -> Spec {
    let (length_scale, form) = (LengthScale::Same(SIGMA), bochner::variance::Form::Offset);
    match measurements {
        None => FourierSpec {
            n_components: frequencies,
            length_scale,
            form,
            projection: Directions::Gaussian,
            ..FourierSpec::default()
        }
        .into(),
        Some(m) => CompressiveSpec {
            n_components: frequencies,
            compressed_dim: m,
            length_scale,
            form,
            ..CompressiveSpec::default()
        }
        .into(),
    }
}

fn accuracy_of(spec: &Spec, train: &Part, test: &Part) -> Outcome<f64> {
    let map = spec.build::<f32>(train.rows.ncols())?;
    let model = Svm::new(map, 1.0)?.fit(&mut InMemory::new(train.rows.view(), train.targets.view())?)?;
    Ok(100.0 * (1.0 - error_rate(&test.classes(), &model.predict_classes(test.rows.view())?)?))
}
