//! Optical random features, table 1: classifiers on features of images, with optical features, Fourier features and none.

use super::classify::{Chosen, Family, describe, exact, refine, search, test};
use super::*;

/// Columns of the table: networks and their layers.
const COLUMNS: [(&str, &[&str]); 3] = [
    ("ResNet34", &["L1", "L2", "L3", "Final"]),
    ("AlexNet", &["MP1", "MP2", "Final"]),
    ("VGG16", &["MP2", "MP3", "MP4", "MP5", "Final"]),
];

/// The names of the columns in the paper.
fn paper_columns() -> impl Iterator<Item = String> {
    COLUMNS.into_iter().flat_map(|(network, layers)| layers.iter().map(move |layer| format!("{network} {layer}")))
}

/// What files of a column are called.
fn file(column: &str) -> String {
    column.to_lowercase().replace(' ', "-")
}

/// Folder with features of networks.
const FEATURES: &str = "cifar10-features";

const OPTICAL: &str = "optical";
const CAMERA: &str = "optical, 8-bit camera";
const FOURIER: &str = "Fourier";
const OURS: [(&str, &str); 2] = [(OPTICAL, "optical, structured (ours)"), (FOURIER, "Fourier, structured (ours)")];
const NONE: &str = "none";
/// How the names of columns end that the paper does not have.
const PIXELS: &str = " pixels";

struct Column {
    name: String,
    /// Training rows of the data set.
    complete: usize,
    train: Part,
    test: Part,
}

pub(super) fn run(run: &Run<'_>) -> Outcome<Findings> {
    let (columns, absent) = columns(run)?;
    let features = run.count("random features")?;
    let (tried, searched) = (run.count("thresholds that are tried")?, run.count("features of the search")?);
    let mut table = comparison(format!("Test error in percent, D = {}", words::count(features)));
    let mut choices = Chosen::table("column", ("features", "features"));
    let mut plot = Plot::new(
        "Test error with and without random features",
        format!("One group of marks per column, at its dimension; D = {}.", words::count(features)),
        Axis::log("input dimension d"),
        Axis::linear("test error").in_percent(),
    );
    let mut findings = Findings::default();
    for column in &columns {
        let d = column.train.rows.ncols();
        let thresholds = thresholds(&column.train, tried);
        let (mut errors, mut limits) = (BTreeMap::new(), Vec::new());
        let mut judged = |kind: &'static str, chosen: &Chosen| -> Outcome {
            let name = format!("{}, {kind}", column.name);
            let size = if kind == NONE { d } else { features };
            let error = test(run, &name, chosen, size, &column.train, &column.test)?.error;
            let counted = Statistic::one(error).percent_of(column.test.len());
            run.beside(&mut table, Show::Fixed(2), &name, &name, &counted);
            let tip = format!("{name}\nd = {d}, {error:.2} %");
            plot.line(kind, Style::Scatter).push(Point::new(d as f64, 0.01 * error), tip);
            errors.insert(kind, error);
            Ok(())
        };
        for (kind, family) in families(d, &column.name)? {
            let mut chosen = search(run, &family, &thresholds, &column.train, searched)?;
            if !run.quick && kind != NONE {
                chosen = refine(run, &family.name, &chosen, &column.train, features)?;
            }
            chosen.row(&mut choices, &column.name, kind, &parameter(&chosen.spec));
            judged(kind, &chosen)?;
            // The paper has the kernel itself for one column, with the hyperparameters of the features.
            let (name, key) = (&family.name, format!("{}, exact", family.name));
            if run.published(&key).is_some() {
                let error = exact(run, name, &chosen, &column.train, &column.test)?.error;
                let counted = Statistic::one(error).percent_of(column.test.len());
                limits.push((key, counted));
            }
            if let Some(seen) = chosen.through_camera() {
                judged(CAMERA, &seen)?;
            }
            if let Some((ours, (_, name))) = chosen.with_our_map().zip(OURS.iter().find(|(of, _)| *of == kind)) {
                judged(name, &ours)?;
            }
        }
        for (key, counted) in &limits {
            run.beside(&mut table, Show::Fixed(2), key, key, counted);
        }
        table.start_group();
        choices.start_group();
        let (optical, fourier, none) = (errors[OPTICAL], errors[FOURIER], errors[NONE]);
        findings.remark(format!(
            "{} (d = {}, {} training rows): optical features {} no features by {:.1} points and {} Fourier features by {:.1}.",
            column.name,
            words::count(d),
            words::count(column.train.len()),
            if optical < none { "beat" } else { "lose to" },
            (optical - none).abs(),
            if optical < fourier { "beat" } else { "lose to" },
            (optical - fourier).abs()
        ));
    }
    if !absent.is_empty() {
        findings.remark(format!(
            "Skipped, because {FEATURES} has no features of theirs: {}. Put NAME-train.npz and NAME-test.npz there, with \
             NAME one of {}.",
            absent.join(", "),
            absent.iter().map(|column| file(column)).collect::<Vec<_>>().join(", "),
        ));
    }
    let fewer: Vec<String> = (columns.iter())
        .filter(|column| column.train.len() < column.complete)
        .map(|c| format!("{} {} of {}", c.name, words::count(c.train.len()), words::count(c.complete)))
        .collect();
    if !fewer.is_empty() {
        findings.remark(format!("Training rows are not all there are: {}; --paper takes all.", fewer.join(", ")));
    }
    findings.tables = vec![table, choices];
    findings.plot("error", plot);
    Ok(findings)
}

/// The hyperparameter, with as many digits as are of interest.
fn parameter(spec: &Spec) -> String {
    match spec {
        Spec::Optical(spec) => format!("bias {}", words::significant(spec.bias, 3)),
        other => describe(other),
    }
}

/// The columns whose data are there, and the names of those of the paper that are not.
fn columns(run: &Run<'_>) -> Outcome<(Vec<Column>, Vec<String>)> {
    let cut = |name: &str, train: Part, test: Part| {
        // Columns of the paper have all rows; pixels, which it has not, enough for the comparison.
        let most = run.count(if name.ends_with(PIXELS) { "training rows of pixels" } else { "training rows" })?;
        Ok::<_, Failure>(Column {
            name: name.to_owned(),
            complete: train.len(),
            train: train.sample(most, 1),
            test: test.sample(run.count("test rows")?, 2),
        })
    };
    let (mut found, mut absent) = (Vec::new(), Vec::new());
    for name in paper_columns() {
        let files = ["train", "test"].map(|part| format!("{}-{part}.npz", file(&name)));
        if files.iter().all(|file| run.data.has(&format!("{FEATURES}/{file}"))) {
            let [train, test] = files.map(|file| run.data.arrays(FEATURES, &file));
            found.push(cut(&name, train?, test?)?);
        } else {
            absent.push(name);
        }
    }
    if run.data.has("cifar10") {
        let (train, test) = run.data.cifar10()?;
        found.push(cut("CIFAR-10 pixels", train, test)?);
    }
    for (name, folder) in [("MNIST pixels", "mnist"), ("Fashion-MNIST pixels", "fashion-mnist")] {
        if run.data.has(folder) {
            let (train, test) = run.data.images(folder)?;
            found.push(cut(name, train, test)?);
        }
    }
    if found.is_empty() {
        // Says what is wanted and where it may be put.
        run.data.images("mnist")?;
    }
    Ok((found, absent))
}

/// 0, where a tenth of the values is, and quantiles of what is not 0: thresholds that suit pixels as well as outputs of
/// rectifiers, and leave no row without a dark place.
fn thresholds(part: &Part, count: usize) -> Vec<f32> {
    let sample = part.sample(500, 3);
    let mut values: Vec<f32> = sample.rows.iter().copied().filter(|v| *v != 0.0).collect();
    values.sort_by(f32::total_cmp);
    let quantile = |i: usize| values.get(i * values.len() / count).copied().unwrap_or(0.0);
    let dark = sample.rows.len() - values.len();
    let mut found = if 10 * dark >= sample.rows.len() || count < 2 { vec![0.0] } else { Vec::new() };
    found.extend((1..count).map(quantile));
    found.dedup();
    found
}

/// Maps and the values of their hyperparameters that are tried on a column.
fn families(d: usize, column: &str) -> Outcome<[(&'static str, Family); 3]> {
    // A row of d bits has some d/2 ones, and two of them are about √(d/4) apart.
    let unit = d as f64;
    let name = |kind: &str| format!("{column}, {kind}");
    let scales = [0.5, 1.0, 2.0].map(|factor| factor * (unit / 6.0).sqrt());
    Ok([
        (OPTICAL, Family::optical(&name(OPTICAL), 2.0, [0.002, 0.02, 0.1].map(|share| share * unit))?),
        (FOURIER, Family::fourier(&name(FOURIER), &scales)?),
        (NONE, Family::plain(&name(NONE), d)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    #[test]
    fn every_column_of_the_paper_has_its_four_numbers() {
        for column in paper_columns() {
            for features in [OPTICAL, CAMERA, FOURIER, NONE] {
                let value = published::find("optical-transfer", &format!("{column}, {features}"));
                assert!(value.is_some_and(|(value, _)| value > 10.0 && value < 50.0), "{column}, {features}");
            }
        }
    }

    #[test]
    fn thresholds_are_zero_and_quantiles_of_what_is_not_zero() {
        // Half of the values are zeros, the others 1 to 200.
        let rows = Array2::from_shape_fn((100, 4), |(i, j)| if j < 2 { 0.0 } else { (2 * i + j - 1) as f32 });
        let part = Part { rows, targets: Array2::zeros((100, 1)) };
        assert_eq!(thresholds(&part, 4), [0.0, 51.0, 101.0, 151.0]);
        let dark = Part { rows: Array2::zeros((5, 2)), targets: Array2::zeros((5, 1)) };
        assert_eq!(thresholds(&dark, 4), [0.0]);
    }
}
