//! Thesis, figure 7.1: how well attention matrices are approximated, for rows of unit length and others.

use super::*;
use bochner::feature::{MaclaurinKernel, PositiveSpec};
use bochner::kernel::Exponential;
use bochner::linalg::TileMut;
use bochner::preprocess::UnitNorm;
use bochner::random::fill_normals;
use bochner::variance::Softmax;

const HEAD: usize = 64;
const MACLAURIN: &str = "optimised Maclaurin, CtR";

/// Queries and keys: what tables call them, the spread of their inner products, whether rows have unit length.
const INPUTS: [(&str, f64, bool); 3] =
    [("logits of spread 0.5", 0.5, false), ("logits of spread 2", 2.0, false), ("unit rows", 1.0, true)];

const BUDGETS: [usize; 3] = [64, 256, 1024];

pub(super) fn run(run: &Run<'_>) -> Outcome<Findings> {
    let (length, draws) = (run.count("rows")?, run.draws()?);
    let mut findings = Findings::default();
    let mut all = BTreeMap::new();
    network(run, draws, &mut findings)?;
    for (input, spread, unit) in INPUTS {
        let normals = |side: u64| {
            let mut values = vec![0.0f64; length * HEAD];
            fill_normals(Seed::new(run.seed).child(side), Role::Noise, 0, 0, TileMut::new(&mut values, length, HEAD));
            // Rows as the kernel exp(x·y) sees them: divided by the fourth root of the dimension.
            let values = values.into_iter().map(|v| v * spread.sqrt() / (HEAD as f64).powf(0.25)).collect();
            let mut rows = Array2::from_shape_vec((length, HEAD), values).expect("length times head numbers");
            if unit {
                UnitNorm::default().apply(rows.view_mut());
            }
            rows
        };
        let (q, k) = (normals(0), normals(1));
        let both = ndarray::concatenate(Side(0), &[q.view(), k.view()]).expect("equal heads");
        let exact = kernel_matrix(&Exponential::new(1.0)?, q.view(), k.view())?;
        let normalized = normalize(&exact);
        let mut table = Table::new(format!("{input}, length {length}, head {HEAD}: relative Frobenius error"))
            .words("features", "features")
            .numbers("count", "number")
            .column("plain", "exp(q·k)", Show::Number(3))
            .column("deviation", "±", Show::Number(2))
            .column("normalised", "softmax", Show::Number(3))
            .column("normalised_deviation", "±", Show::Number(2));
        let mut plots = ["exp(q·k)", "softmax of q·k"].map(|kind| {
            let x = Axis::log("number of features").with_counts(&BUDGETS);
            let subtitle = "Mean relative Frobenius error over draws.";
            Plot::new(format!("{kind}, {input}"), subtitle, x, Axis::log("relative error"))
        });
        for (name, spec) in maps() {
            for features in BUDGETS {
                let error = |normal: bool| {
                    let key = format!("{name} {features} {input} {length} {normal}");
                    run.per_draw(draws, &key, &mut |seed| {
                        let map = spec.redrawn(features, seed).resolve(both.view())?.build::<f64>(HEAD)?;
                        let estimate = map.transform(q.view())?.dot(&map.transform(k.view())?.t());
                        Ok(match normal {
                            true => relative_frobenius_error(normalized.view(), normalize(&estimate).view())?,
                            false => relative_frobenius_error(exact.view(), estimate.view())?,
                        })
                    })
                };
                let (plain, softmax) = (error(false)?, error(true)?);
                table.add(&[&name, &features, &plain.mean, &plain.spread(), &softmax.mean, &softmax.spread()]);
                for (plot, value) in plots.iter_mut().zip([plain.mean, softmax.mean]) {
                    let tip = format!("{name}, {features}\n{value:.4}");
                    plot.line(name, Style::Marks).push(Point::new(features as f64, value), tip);
                }
                all.insert((input, name, features), plain.mean);
            }
            table.start_group();
        }
        findings.tables.push(table);
        for (plot, kind) in plots.into_iter().zip(["plain", "softmax"]) {
            findings.plot(format!("{}-{kind}", input.replace(' ', "-")), plot);
        }
    }
    let most = BUDGETS[BUDGETS.len() - 1];
    let of = |input, name| all[&(input, name, most)];
    let (wide, narrow) = (INPUTS[1].0, INPUTS[2].0);
    let names: Vec<&str> = maps().iter().map(|(name, _)| *name).collect();
    let poor = names.iter().all(|name| of(wide, *name) > 0.1);
    let better = names.iter().all(|name| of(narrow, *name) < of(wide, *name));
    findings.remark(format!(
        "{most} features, {wide}: {}; {}.",
        names.iter().map(|n| format!("{n} has a relative error of {:.2}", of(wide, *n))).collect::<Vec<_>>().join(", "),
        if poor { "all are poor, as in the thesis" } else { "not all are poor, unlike in the thesis" }
    ));
    findings.remark(format!(
        "Unit rows {} every method, {} the thesis; the optimised Maclaurin features have an error of {:.4} there, the best of \
         the others {:.4}.",
        if better { "help" } else { "do not help" },
        if better { "as in" } else { "unlike in" },
        of(narrow, MACLAURIN),
        names.iter().filter(|n| **n != MACLAURIN).map(|n| of(narrow, *n)).fold(f64::INFINITY, f64::min)
    ));
    Ok(findings)
}

/// Queries and keys of a language model, layer by layer: as they are, and scaled to unit length as in every second row of the
/// figure.
fn network(run: &Run<'_>, draws: usize, findings: &mut Findings) -> Outcome {
    const FOLDER: &str = "network_features";
    const FILE: &str = "attention_minilm.npz";
    /// Heads, tokens and coordinates of a layer.
    const SHAPE: (usize, usize, usize) = (12, 256, 32);
    const FEATURES: usize = 1024;
    if !run.data.has(&format!("{FOLDER}/{FILE}")) {
        findings.remark(format!(
            "Queries and keys of a network are not in the data folder ({FOLDER}/{FILE}): entries are drawn."
        ));
        return Ok(());
    }
    let (layers, heads) = (run.count("layers")?, run.count("heads")?);
    let mut loaded: Option<[Array2<f32>; 2]> = None;
    let mut table = Table::new(format!(
        "Queries and keys of a language model, {FEATURES} features: relative error of exp(q·k), mean over heads"
    ))
    .numbers("layer", "layer")
    .words("rows", "rows")
    .column("largest", "largest logit", Show::Fixed(1));
    for (name, _) in maps() {
        table = table.column(name, name, Show::Number(3));
    }
    let mut better = (0, 0);
    for layer in 0..layers {
        let mut plain = Vec::new();
        for (rows, unit) in [("as they are", false), ("unit length", true)] {
            let key = format!("network layer {layer} {rows} heads={heads} features={FEATURES} draws={draws}");
            let found = run.values(&key, &mut || {
                if loaded.is_none() {
                    loaded = Some([run.data.array(FOLDER, FILE, "Q")?, run.data.array(FOLDER, FILE, "K")?]);
                }
                let both = loaded.as_ref().ok_or_else(|| Failure::Failed(format!("{FILE} has no rows")))?;
                layer_errors(run, both, SHAPE, (layer, heads, unit), (FEATURES, draws))
            })?;
            let mut cells = vec![Cell::count(layer + 1), Cell::text(rows), Cell::fixed(found[0], 1)];
            cells.extend(found[1..].iter().map(|error| Show::Number(3).cell(*error)));
            table.push(cells);
            match unit {
                false => plain = found,
                true => {
                    better.0 += found[1..].iter().zip(&plain[1..]).filter(|(unit, plain)| unit < plain).count();
                    better.1 += found.len() - 1;
                }
            }
        }
        table.start_group();
    }
    findings.remark(format!(
        "Queries and keys of a language model: unit length lowers the error in {} of {} cases (layers and maps); in the thesis it \
         does so for every map.",
        better.0, better.1
    ));
    findings.tables.push(table);
    Ok(())
}

/// The largest logit of a layer of the first sequence, and the mean relative error of every map over its heads.
fn layer_errors(
    run: &Run<'_>,
    both: &[Array2<f32>; 2],
    (of_layer, tokens, dim): (usize, usize, usize),
    (layer, heads, unit): (usize, usize, bool),
    (features, draws): (usize, usize),
) -> Outcome<Vec<f64>> {
    let mut largest = f64::NEG_INFINITY;
    let mut sums = vec![0.0; maps().len()];
    for head in 0..heads.min(of_layer) {
        let rows = |all: &Array2<f32>| -> Outcome<Array2<f64>> {
            let start = (layer * of_layer + head) * tokens * dim;
            let missing = || Failure::Failed(format!("there is no layer {} with head {}", layer + 1, head + 1));
            let values = all.row(0).to_vec();
            let values = values.get(start..start + tokens * dim).ok_or_else(missing)?;
            // exp(q·k/√d) is the exponential kernel of rows divided by the fourth root of d.
            let values = values.iter().map(|v| f64::from(*v) / (dim as f64).powf(0.25)).collect();
            let mut rows = Array2::from_shape_vec((tokens, dim), values).map_err(|e| Failure::Failed(e.to_string()))?;
            if unit {
                UnitNorm::default().apply(rows.view_mut());
            }
            Ok(rows)
        };
        let (q, k) = (rows(&both[0])?, rows(&both[1])?);
        let sample =
            ndarray::concatenate(Side(0), &[q.view(), k.view()]).map_err(|e| Failure::Failed(e.to_string()))?;
        largest = q.dot(&k.t()).iter().copied().fold(largest, f64::max);
        let exact = kernel_matrix(&Exponential::new(1.0)?, q.view(), k.view())?;
        for (sum, (_, spec)) in sums.iter_mut().zip(maps()) {
            for draw in 0..draws as u64 {
                let seed = Seed::new(run.seed).child(draw).number();
                let map = spec.redrawn(features, seed).resolve(sample.view())?.build::<f64>(dim)?;
                let estimate = map.transform(q.view())?.dot(&map.transform(k.view())?.t());
                *sum += relative_frobenius_error(exact.view(), estimate.view())?;
            }
        }
    }
    let count = (heads.min(of_layer) * draws) as f64;
    Ok([vec![largest], sums.iter().map(|sum| sum / count).collect()].concat())
}

fn maps() -> Vec<(&'static str, Spec)> {
    let positive = |kind| PositiveSpec { kind, ..PositiveSpec::default() };
    let maclaurin = MaclaurinSpec { kernel: MaclaurinKernel::Exponential, weights: Weights::Ctr, ..optimized() };
    vec![
        ("Fourier (trigonometric)", positive(Softmax::Trigonometric).into()),
        ("positive", positive(Softmax::Positive).into()),
        ("hyperbolic", positive(Softmax::Hyperbolic).into()),
        (MACLAURIN, maclaurin.into()),
    ]
}

/// Rows divided by their sums.
fn normalize(matrix: &Array2<f64>) -> Array2<f64> {
    let sums = matrix.sum_axis(Side(1)).insert_axis(Side(1));
    matrix / &sums
}
