//! Optical random features, figure 2: test error on Fashion-MNIST against the number of features.

use super::classify::{Chosen, Family, Tested, describe, exact, heat, refine, refine_exact, search, test};
use super::*;

const LINEAR: &str = "no random features";
const SQUARE: &str = "simulated m = 2";
const FOURTH: &str = "simulated m = 4";
const FOURIER: &str = "Fourier (Gaussian)";
/// Features up to which the hyperparameters of the first search serve, and of the second.
const FEW: usize = 2000;
const MANY: usize = 20_000;
/// Features of which the conference version tells differences.
const CONFERENCE: usize = 5000;
/// How maps are called whose light a camera reads.
const CAMERA: &str = "8-bit camera";
/// How maps are called that we would take instead of the paper's.
const OURS: &str = "structured (ours)";

pub(super) fn run(run: &Run<'_>) -> Outcome<Findings> {
    let (train, held) = run.data.images("fashion-mnist")?;
    let train = train.sample(run.count("training rows")?, 1);
    let rows = words::count(train.len());
    let sizes: Vec<usize> = run.setting("numbers of features")?;
    let (sizes, thresholds): (&[usize], Vec<f32>) = (&sizes, run.setting("thresholds that are tried")?);
    let searched = run.count("features of the search")?;
    let exact_rows = (run.count("rows that fit in the search for the exact kernel")?, run.count("rows that judge it")?);
    let with_kernels: bool = run.setting("exact kernels")?;
    let counted = |error: f64| Statistic::one(error).percent_of(held.len());
    let mut table = comparison(format!("Test error in percent, {rows} training rows"));
    let mut chosen_table = Chosen::table("features", ("penalty_for", "penalty for"));
    let mut effort = Table::new("Fits")
        .words("features", "features")
        .words("size", "D")
        .numbers("steps", "steps")
        .column("residual", "residual", Show::Number(2))
        .column("seconds", "time", Show::Duration);
    let mut errors: BTreeMap<(String, usize), f64> = BTreeMap::new();
    let mut limits: BTreeMap<String, f64> = BTreeMap::new();
    let (mut versions, mut heats) = (Vec::new(), Vec::new());
    for (color, family) in families()?.into_iter().enumerate() {
        let name = family.name.clone();
        let few = search(run, &family, &thresholds, &train, searched)?;
        if name == LINEAR {
            few.row(&mut chosen_table, &name, "all", &describe(&few.spec));
            // As many directions as there are pixels: the features are the pixels, turned.
            let found = test(run, &name, &few, train.rows.ncols(), &train, &held)?;
            run.beside(&mut table, Show::Fixed(2), &name, &name, &counted(found.error));
            table.start_group();
            continue;
        }
        heats.push((format!("grid-{color}"), heat(run, &family, &few, &train, searched)?));
        // Searched again only where the larger sizes are wanted.
        let (many, limit) = match sizes.iter().max() {
            Some(&most) if !with_kernels && most <= FEW => (few.clone(), few.clone()),
            most => {
                let many = if run.quick { few.clone() } else { refine(run, &name, &few, &train, 10_000)? };
                let is_wanted = with_kernels || most.is_some_and(|&most| most > MANY);
                let limit = if is_wanted { refine_exact(run, &name, &many, &train, exact_rows)? } else { many.clone() };
                (many, limit)
            }
        };
        if !run.quick {
            few.row(&mut chosen_table, &name, "D = 1,000", &describe(&few.spec));
        }
        let (of_many, of_limit) =
            if run.quick { ("all D", "exact kernel") } else { ("D to 20,000", "larger D, exact kernel") };
        many.row(&mut chosen_table, &name, of_many, &describe(&many.spec));
        limit.row(&mut chosen_table, &name, of_limit, &describe(&limit.spec));
        chosen_table.start_group();
        let ideal = Version { name, color, exact: true, few, many, limit };
        let others = [ideal.through_camera(), ideal.with_our_map()];
        versions.push(ideal);
        versions.extend(others.into_iter().flatten());
    }
    // Few features first, for all maps: a run that ends early leaves numbers that can be compared.
    for &features in sizes.iter().filter(|&&d| d <= MANY) {
        for version in &versions {
            test(run, &version.name, version.choice(features, run.quick), features, &train, &held)?;
        }
    }
    for version in versions.iter().filter(|v| v.exact && with_kernels) {
        exact(run, &version.name, &version.limit, &train, &held)?;
    }
    // Cameras and our own maps are a matter of accuracy: where hours count, their largest fits are left out.
    let largest = run.count("largest D of cameras and of ours")?;
    let mut plot = Plot::new(
        "Test error against number of features",
        "Ridge classifier on binarised Fashion-MNIST, one draw per number of features. Dashed: exact kernels.",
        Axis::log("number of features D").with_counts(sizes),
        Axis::linear("test error").in_percent(),
    );
    for version in &versions {
        let name = &version.name;
        // Short, so that the figure keeps its width.
        let label = name.replace("simulated ", "").replace("8-bit ", "");
        let mut line = Series::new(label, Style::Marks, version.color);
        for &features in sizes.iter().filter(|&&d| version.exact || d <= largest) {
            let found = test(run, name, version.choice(features, run.quick), features, &train, &held)?;
            let (error, count) = (found.error, words::count(features));
            let what = format!("{name}, D = {count}");
            run.beside(&mut table, Show::Fixed(2), &format!("{name} D={features}"), &what, &counted(error));
            spent(&mut effort, name, &count, &found);
            line.push(Point::new(features as f64, 0.01 * error), format!("{what}\n{error:.2} %"));
            errors.insert((name.clone(), features), error);
        }
        plot.series.push(line);
        if version.exact && with_kernels {
            let found = exact(run, name, &version.limit, &train, &held)?;
            let (error, what) = (found.error, format!("{name}, exact kernel"));
            limits.insert(name.clone(), error);
            run.beside(&mut table, Show::Fixed(2), &format!("{name} exact"), &what, &counted(error));
            spent(&mut effort, name, "exact kernel", &found);
            let (ends, tip) = ([sizes[0], sizes[sizes.len() - 1]], format!("{what}\n{error:.2} %"));
            plot.series.push(Series::level(&what, version.color, &ends, 0.01 * error, &tip).unlabelled());
        }
        table.start_group();
        effort.start_group();
    }
    // What the conference version says of its figure in words.
    let camera = format!("{SQUARE}, {CAMERA}");
    for (what, from, to) in
        [("gain of Fourier over", SQUARE, FOURIER), ("loss of the camera at m = 2", &camera, SQUARE)]
    {
        let at = |name: &str| errors.get(&(name.to_owned(), CONFERENCE)).copied();
        let Some((from, to)) = at(from).zip(at(to)) else { continue };
        let of = |error: f64| counted(error).sampling;
        let found = Statistic { sampling: of(from).hypot(of(to)), ..Statistic::one(from - to) };
        let of_whom = if what.starts_with("gain") { format!("{what} {SQUARE}") } else { what.to_owned() };
        let key = format!("{of_whom}, D={CONFERENCE}");
        run.beside(&mut table, Show::Fixed(2), &key, &format!("{of_whom}, D = {}", words::count(CONFERENCE)), &found);
    }
    let mut findings = Findings { remarks: remarks(sizes, &errors, &limits), ..Findings::default() };
    if run.quick {
        findings
            .remark(format!("A quick run trains on {rows} of 60,000 rows: its errors are higher than the paper's."));
    }
    findings.tables = vec![table, chosen_table, effort];
    findings.plot("error", plot);
    findings.plots.extend(heats);
    Ok(findings)
}

fn spent(table: &mut Table, name: &str, size: &str, found: &Tested) {
    let residual = (found.residual > 0.0).then_some(found.residual);
    table.add(&[&name, &size, &(found.steps as usize), &residual, &found.seconds]);
}

/// Maps and the values of their hyperparameters that are tried.
fn families() -> Outcome<Vec<Family>> {
    let scales = [-1, 0, 1, 2].map(|e| 8.0 * 2f64.powf(0.5 * f64::from(e)));
    Ok(vec![
        Family::optical(SQUARE, 2.0, [1.0, 16.0, 64.0])?,
        Family::optical(FOURTH, 4.0, [1.0, 16.0, 64.0])?,
        Family::fourier(FOURIER, &scales)?,
        Family::plain(LINEAR, 1024),
    ])
}

/// A map with its hyperparameters for few features, for many, and for so many that the kernel is reached.
struct Version {
    name: String,
    color: usize,
    /// Whether it is the paper's map, whose exact kernel is fitted too.
    exact: bool,
    few: Chosen,
    many: Chosen,
    limit: Chosen,
}

impl Version {
    fn choice(&self, features: usize, quick: bool) -> &Chosen {
        match features {
            d if d <= FEW || quick => &self.few,
            d if d <= MANY => &self.many,
            _ => &self.limit,
        }
    }

    fn through_camera(&self) -> Option<Version> {
        self.changed(CAMERA, 3, Chosen::through_camera)
    }

    fn with_our_map(&self) -> Option<Version> {
        self.changed(OURS, 6, Chosen::with_our_map)
    }

    fn changed(&self, how: &str, color: usize, change: fn(&Chosen) -> Option<Chosen>) -> Option<Version> {
        Some(Version {
            name: format!("{}, {how}", self.name),
            color: self.color + color,
            exact: false,
            few: change(&self.few)?,
            many: change(&self.many)?,
            limit: change(&self.limit)?,
        })
    }
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
        let with = format!("{name}, {CAMERA}");
        let costs: Vec<f64> =
            sizes.iter().filter_map(|&d| at(&with, d).zip(at(name, d)).map(|(with, without)| with - without)).collect();
        if !costs.is_empty() {
            let cost = Statistic::of(&costs);
            found.push(format!(
                "{name}: an {CAMERA} changes the error by {:+.2} points on average over {} sizes.",
                cost.mean, cost.count
            ));
        }
    }
    found
}
