//! Operator-valued random features, figure 3: curl-free against independent outputs on a 5-D gradient field.

use super::{Experiment, Findings, Run};
use bochner::feature::OperatorSpec;
use bochner::kernel::{Gaussian, OperatorKernel, OutputMatrix};
use bochner::metrics::r2;
use bochner::model::{ExactOperatorRidge, Fit, OperatorRidge, Predict};
use bochner::preprocess::median_distance;
use bochner::random::{Role, Seed, Stream};
use bochner::rows::InMemory;
use bochner::words;
use bochner_report::plot::{Axis, Plot, Point, Series, Style};
use bochner_report::table::{Cell, Table};
use bochner_table::failure::Outcome;
use bochner_table::score::winner;
use ndarray::{Array1, Array2, s};
use std::collections::BTreeMap;
use std::time::Instant;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "orff-vectorfield",
    what: "curl-free features against independent outputs and the exact kernel on a gradient field in five dimensions",
    source: "operator-valued, figure 3; gradient of 1,000 random waves of bandwidth 0.4, the paper has curves only",
    needs: &[],
    minutes: 9.0,
    run,
};

const DIM: usize = 5;
const WAVES: usize = 1000;
/// Bandwidth of the field.
const BANDWIDTH: f64 = 0.4;
const PENALTIES: [f64; 6] = [1e-6, 1e-4, 1e-2, 1e-1, 1.0, 100.0];

const CURL_FREE: &str = "curl-free features";
const INDEPENDENT: &str = "independent features";
const MEDIAN: &str = "curl-free, median distance";
const EXACT: &str = "exact curl-free kernel";
const NAMES: [&str; 4] = [CURL_FREE, INDEPENDENT, MEDIAN, EXACT];

/// Points and the gradient of a random function there; `part` tells draws of points apart.
fn field(count: usize, seed: u64, part: u64) -> (Array2<f64>, Array2<f64>) {
    let mut draw = Stream::new(Seed::new(seed), Role::Direction, 0);
    let frequencies = Array2::from_shape_simple_fn((WAVES, DIM), || draw.normal() / BANDWIDTH);
    let phases = Array1::from_shape_simple_fn(WAVES, || std::f64::consts::TAU * draw.uniform());
    let mut points = Stream::new(Seed::new(seed), Role::Split, part);
    let rows = Array2::from_shape_simple_fn((count, DIM), || 2.0 * points.uniform() - 1.0);
    let slopes = (rows.dot(&frequencies.t()) + &phases).mapv(|angle| -angle.sin() * (2.0 / WAVES as f64).sqrt());
    let targets = slopes.dot(&frequencies);
    (rows, targets)
}

struct Study<'a> {
    run: &'a Run<'a>,
    train: (Array2<f64>, Array2<f64>),
    test: (Array2<f64>, Array2<f64>),
    kernels: BTreeMap<&'static str, OperatorKernel>,
}

struct Found {
    r2: f64,
    seconds: f64,
    penalty: f64,
}

impl Study<'_> {
    /// Penalty on a fifth of the points, then a fit on all of them.
    fn fit(&self, name: &'static str, count: usize, frequencies: usize) -> Outcome<Found> {
        let exact = name == EXACT;
        let size = if exact { String::new() } else { format!(" D={frequencies}") };
        let values = self.run.values(&format!("{name} N={count}{size}"), || {
            let cut = count * 4 / 5;
            let kernel = &self.kernels[name];
            let rows = |array: &'_ Array2<f64>, from: usize, to: usize| array.slice(s![from..to, ..]).to_owned();
            let part = |from, to| (rows(&self.train.0, from, to), rows(&self.train.1, from, to));
            // R² on `at` of a model for every penalty.
            let scores = |penalties: &[f64], fit: &Pair, at: &Pair| -> Outcome<Vec<f64>> {
                let score = |predicted: Array2<f64>| Ok(r2(at.1.view(), predicted.view())?);
                if exact {
                    let one = |&penalty: &f64| {
                        let ridge = ExactOperatorRidge::new(kernel.clone(), penalty)?;
                        score(ridge.fit(fit.0.view(), fit.1.view())?.predict(at.0.view())?)
                    };
                    return penalties.iter().map(one).collect();
                }
                let spec = OperatorSpec {
                    n_components: 2 * frequencies,
                    seed: self.run.seed,
                    ..OperatorSpec::new(kernel.clone())
                };
                let ridge = OperatorRidge::new(spec.build::<f64>(DIM)?, penalties[0])?;
                let mut source = InMemory::new(fit.0.view(), fit.1.view())?;
                // One penalty is solved as anybody would solve it: that is what is timed.
                if let [_] = penalties {
                    return Ok(vec![score(ridge.fit(fit.0.view(), fit.1.view())?.predict(at.0.view())?)?]);
                }
                let models = ridge.fit_path(penalties, &mut source, &mut bochner::Context::default())?;
                models.iter().map(|model| score(model.predict(at.0.view())?)).collect()
            };
            let held = scores(&PENALTIES, &part(0, cut), &part(cut, count))?;
            let best = winner(ndarray::aview1(&held));
            let all = part(0, count);
            let start = Instant::now();
            let value = scores(&PENALTIES[best..=best], &all, &self.test)?[0];
            Ok(vec![value, start.elapsed().as_secs_f64(), PENALTIES[best]])
        })?;
        Ok(Found { r2: values[0], seconds: values[1], penalty: values[2] })
    }
}

type Pair = (Array2<f64>, Array2<f64>);

fn run(run: &Run<'_>) -> Outcome<Findings> {
    let sizes: &[usize] = run.choose(&[300, 1000, 3000][..], &[300, 1000, 2000, 4000, 10_000][..]);
    let exact_limit = run.choose(600, 4000);
    let frequencies = run.choose(500, 1000);
    let counts: &[usize] = run.choose(&[50, 150, 500][..], &[30, 100, 300, 1000, 3000][..]);
    let fixed = run.choose(300, 2000);
    let most = sizes[sizes.len() - 1];
    let train = field(most, run.seed, 1);
    let median = median_distance(train.0.view(), Seed::new(run.seed), 1000)?;
    let kernels = BTreeMap::from([
        (CURL_FREE, OperatorKernel::curl_free(BANDWIDTH)?),
        (EXACT, OperatorKernel::curl_free(BANDWIDTH)?),
        (MEDIAN, OperatorKernel::curl_free(median)?),
        (INDEPENDENT, OperatorKernel::decomposable(Gaussian::new(BANDWIDTH)?.into(), OutputMatrix::identity(DIM)?)?),
    ]);
    let study = Study { run, train, test: field(2000, run.seed, 2), kernels };
    let mut table = Table::new("R² on 2,000 test points, and seconds to fit and predict")
        .words("model", "model")
        .numbers("rows", "N")
        .numbers("frequencies", "D")
        .numbers("r2", "R²")
        .numbers("seconds", "time")
        .numbers("penalty", "penalty");
    let mut scores = BTreeMap::new();
    let [mut by_rows, mut times, mut by_frequencies] = [0, 1, 2].map(|_| Vec::new());
    for (index, name) in NAMES.into_iter().enumerate() {
        let exact = name == EXACT;
        let mut push = |count: usize, d: usize, found: &Found| {
            table.push(vec![
                Cell::text(name),
                Cell::count(count),
                if exact { Cell::missing("∞") } else { Cell::count(d) },
                Cell::fixed(found.r2, 4),
                Cell::duration(found.seconds),
                Cell::number(found.penalty, 2),
            ]);
        };
        let (mut line, mut time) = (Series::new(name, Style::Marks, index), Series::new(name, Style::Marks, index));
        for &count in sizes.iter().filter(|&&n| !exact || n <= exact_limit) {
            let found = study.fit(name, count, frequencies)?;
            push(count, frequencies, &found);
            scores.insert((name, count), found.r2);
            let tip =
                format!("{name}, N = {}\nR² {:.4}, {}", words::count(count), found.r2, words::duration(found.seconds));
            line.push(Point::new(count as f64, found.r2), tip.clone());
            time.push(Point::new(count as f64, found.seconds), tip);
        }
        by_rows.push(line);
        times.push(time);
        let mut line = Series::new(name, if exact { Style::Dashed } else { Style::Marks }, index);
        for &d in counts {
            let found = study.fit(name, fixed, d)?;
            let is_in_rows = d == frequencies && sizes.contains(&fixed);
            if !exact && !is_in_rows {
                push(fixed, d, &found);
            }
            let tip = format!("{name}, D = {}\nR² {:.4}", words::count(d), found.r2);
            line.push(Point::new(d as f64, found.r2), tip);
        }
        by_frequencies.push(line);
        table.start_group();
    }
    let ticks = |values: &[usize]| values.iter().map(|&v| v as f64).collect();
    let chosen = "Penalty chosen on a fifth of the training points.";
    let plots = vec![
        (
            "r2".to_owned(),
            Plot {
                title: "Learning a gradient field".into(),
                subtitle: format!("{} frequencies. {chosen}", words::count(frequencies)),
                x: Axis::log("training points N").with_ticks(ticks(sizes)),
                y: Axis::linear("R² on test points"),
                series: by_rows,
            },
        ),
        (
            "time".to_owned(),
            Plot {
                title: "Time to fit and predict".into(),
                subtitle: format!("{} frequencies, 2,000 predictions.", words::count(frequencies)),
                x: Axis::log("training points N").with_ticks(ticks(sizes)),
                y: Axis::log("seconds"),
                series: times,
            },
        ),
        (
            "r2-frequencies".to_owned(),
            Plot {
                title: "R² against number of frequencies".into(),
                subtitle: format!("{} training points. {chosen}", words::count(fixed)),
                x: Axis::log("number of frequencies D").with_ticks(ticks(counts)),
                y: Axis::linear("R² on test points"),
                series: by_frequencies,
            },
        ),
    ];
    let remarks = remarks(sizes, &scores, median, exact_limit);
    Ok(Findings { tables: vec![table], plots, remarks })
}

fn remarks(
    sizes: &[usize],
    scores: &BTreeMap<(&'static str, usize), f64>,
    median: f64,
    exact_limit: usize,
) -> Vec<String> {
    let mut found = Vec::new();
    let lost: Vec<String> = sizes
        .iter()
        .filter(|&&n| scores[&(CURL_FREE, n)] <= scores[&(INDEPENDENT, n)])
        .map(|&n| words::count(n))
        .collect();
    found.push(match lost.is_empty() {
        true => format!("Curl-free features are ahead of independent outputs at all {} sizes.", sizes.len()),
        false => format!("Curl-free features are ahead of independent outputs except at N = {}.", lost.join(", ")),
    });
    let better = sizes.iter().filter(|&&n| scores[&(CURL_FREE, n)] > scores[&(MEDIAN, n)]).count();
    found.push(format!(
        "The length scale is the field's own, {BANDWIDTH}; it is better than the paper's median distance, {median:.2}, at \
         {better} of {} sizes.",
        sizes.len()
    ));
    for &n in sizes.iter().filter(|&&n| n <= exact_limit) {
        let (features, exact) = (scores[&(CURL_FREE, n)], scores[&(EXACT, n)]);
        found.push(format!(
            "N = {}: the exact kernel's R² is {exact:.4}, that of features {features:.4}{}",
            words::count(n),
            if features > exact { "; fewer frequencies than the kernel has also regularise." } else { "." }
        ));
    }
    if let Some(&next) = sizes.iter().find(|&&n| n > exact_limit) {
        let bytes = 4.0 * (DIM * next) as f64 * (DIM * next) as f64;
        found.push(format!(
            "The exact kernel ends at N = {}: the triangle for N = {} takes {}, and its factorisation {:.0} times the \
             operations.",
            words::count(exact_limit),
            words::count(next),
            words::rate(bytes, "B"),
            (next as f64 / exact_limit as f64).powi(3)
        ));
    }
    found
}
