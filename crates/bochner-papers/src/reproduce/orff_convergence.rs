//! Operator-valued random features, figure 1: the largest error over a set of points beside the uniform bound (A), the variance
//! beside its bound (B), and the mean error beside the closed-form variance.

use super::*;
use ndarray::Array4;

const DIM: usize = 4;
/// Of the cube that points are drawn from.
const DIAMETER: f64 = 4.0;
/// Probability with which the uniform bound may fail.
const FAILURE: f64 = 0.05;
const FREQUENCIES: [usize; 5] = [10, 32, 100, 320, 1000];

/// The kernels of the figure, with unit bandwidth.
fn kernels() -> Outcome<[(&'static str, OperatorKernel); 3]> {
    let outputs = Array2::from_shape_fn((DIM, DIM), |(i, j)| if i == j { 1.0 } else { 0.5 });
    Ok([
        ("decomposable", OperatorKernel::decomposable(Gaussian::new(1.0)?.into(), OutputMatrix::new(outputs.view())?)?),
        ("curl-free", OperatorKernel::curl_free(1.0)?),
        ("divergence-free", OperatorKernel::div_free(1.0)?),
    ])
}

pub(super) fn run(run: &Run<'_>) -> Outcome<Findings> {
    let (count, draws) = (run.count("points")?, run.draws()?);
    let rows = uniform_rows(count, run.seed);
    let mut table = Table::new(format!("Relative Frobenius error over {count} x {count} blocks"))
        .words("kernel", "kernel")
        .numbers("frequencies", "D")
        .column("error", "error", Show::Percent(2))
        .column("deviation", "deviation", Show::Percent(2))
        .column("predicted", "predicted", Show::Percent(2));
    let mut plot = Plot::new(
        "Error of operator-valued features",
        "Marks: mean over draws. Dashed: predicted from the closed-form matrix variance.",
        Axis::log("number of frequencies D").with_counts(&FREQUENCIES),
        Axis::log("relative error of the kernel matrix").in_percent(),
    );
    let mut findings = Findings::default();
    for (index, (name, kernel)) in kernels()?.into_iter().enumerate() {
        let exact = kernel.matrix(rows.view(), rows.view())?;
        let norm_sq: f64 = exact.iter().map(|k| k * k).sum();
        let mut dashed = Series::new(name, Style::Dashed, index).unlabelled();
        let mut means = Vec::new();
        for frequencies in FREQUENCIES {
            let spec = |seed| features(&kernel, frequencies, seed);
            let found = run.per_draw(draws, &format!("{name} {count} D={frequencies}"), &mut |seed| {
                let estimate: Array4<f64> = spec(seed).build::<f64>(DIM)?.estimate(rows.view(), rows.view())?;
                Ok(((&estimate - &exact).mapv(|e| e * e).sum() / norm_sq).sqrt())
            })?;
            // The trace of E(K̃ - K)² is the expected squared Frobenius norm of a block.
            let variance = spec(0).variance(rows.view(), rows.view())?;
            let traces: f64 = (0..DIM).map(|i| variance.slice(ndarray::s![.., .., i, i]).sum()).sum();
            let predicted = (traces / norm_sq).sqrt();
            table.add(&[&name, &frequencies, &found.mean, &found.deviation, &predicted]);
            let d = frequencies as f64;
            means.push((d, found.mean));
            let tip = format!("{name}, D = {frequencies}\n{:.2} %", 100.0 * found.mean);
            plot.line(name, Style::Scatter).push(Point::new(d, found.mean), tip);
            dashed.push(Point::new(d, predicted), format!("{name}\npredicted {:.2} %", 100.0 * predicted));
        }
        let ((few, large), (many, small)) = (means[0], means[means.len() - 1]);
        let rate = (small / large).ln() / (many / few).ln();
        findings.remark(format!("{name}: the error falls like D to the power {rate:.2}; -0.5 is expected."));
        table.start_group();
        plot.series.push(dashed);
    }
    findings.plot("error", plot);
    findings.tables.push(table);
    uniform(run, &mut findings)?;
    single(run, &mut findings)?;
    Ok(findings)
}

fn uniform_rows(count: usize, seed: u64) -> Array2<f64> {
    let mut draw = Stream::new(Seed::new(seed), Role::Noise, 0);
    Array2::from_shape_simple_fn((count, DIM), || 2.0 * draw.uniform() - 1.0)
}

fn features(kernel: &OperatorKernel, frequencies: usize, seed: u64) -> OperatorSpec {
    let projection = Directions::Gaussian;
    OperatorSpec { n_components: 2 * frequencies, projection, seed, ..OperatorSpec::new(kernel.clone()) }
}

/// Figure 1 A: the largest spectral norm of the error over all pairs of points, and the error that theorem 10 allows.
fn uniform(run: &Run<'_>, findings: &mut Findings) -> Outcome {
    let (count, draws) = (run.count("points of the supremum")?, run.count("draws of the supremum")?);
    let rows = uniform_rows(count, run.seed);
    let mut table = Table::new(format!("Largest spectral norm of the error over {count} x {count} pairs (figure 1 A)"))
        .words("kernel", "kernel")
        .numbers("frequencies", "D")
        .column("largest", "largest error", Show::Number(3))
        .column("deviation", "deviation", Show::Number(2))
        .column("bound", "theorem 10", Show::Number(3));
    let mut plot = Plot::new(
        "Largest error over a set of points",
        format!(
            "Marks: mean over draws of the supremum of spectral norms. Dashed: what theorem 10 allows with probability {}.",
            1.0 - FAILURE
        ),
        Axis::log("number of frequencies D").with_counts(&FREQUENCIES),
        Axis::log("largest spectral norm of the error"),
    );
    for (index, (name, kernel)) in kernels()?.into_iter().enumerate() {
        let mut exact = None;
        let mut dashed = Series::new(name, Style::Dashed, index).unlabelled();
        let mut means = Vec::new();
        for frequencies in FREQUENCIES {
            let found = run.per_draw(draws, &format!("largest {name} {count} D={frequencies}"), &mut |seed| {
                if exact.is_none() {
                    exact = Some(kernel.matrix(rows.view(), rows.view())?);
                }
                let estimate: Array4<f64> =
                    features(&kernel, frequencies, seed).build::<f64>(DIM)?.estimate(rows.view(), rows.view())?;
                Ok(exact.as_ref().map_or(f64::NAN, |exact| largest_norm(&(estimate - exact))))
            })?;
            let d = frequencies as f64;
            let bound = features(&kernel, frequencies, run.seed).bound(DIM, DIAMETER)?;
            let allowed = first_below(FAILURE, &|error| bound.failure(d, error));
            table.add(&[&name, &frequencies, &found.mean, &found.spread(), &allowed]);
            let tip = format!("{name}, D = {frequencies}\n{:.3}", found.mean);
            plot.line(name, Style::Scatter).push(found.point(d), tip);
            dashed.push(Point::new(d, allowed), format!("{name}\ntheorem 10: {allowed:.3}"));
            means.push((d, found.mean, allowed));
        }
        let ((few, large, _), (many, small, allowed)) = (means[0], means[means.len() - 1]);
        findings.remark(format!(
            "{name}: the largest error falls like D to the power {:.2}; theorem 10 allows {:.0} times as much at D = {}.",
            (small / large).ln() / (many / few).ln(),
            allowed / small,
            words::count(many as usize)
        ));
        table.start_group();
        plot.series.push(dashed);
    }
    findings.plot("largest-error", plot);
    findings.tables.push(table);
    Ok(())
}

/// Figure 1 B: the norm of the variance of the curl-free features at one difference of points, and proposition 12's bound on it.
fn single(run: &Run<'_>, findings: &mut Findings) -> Outcome {
    let draws = run.count("draws of the variance")?;
    let rows = uniform_rows(2, run.seed);
    let (x, z) = rows.view().split_at(Side(0), 1);
    let kernel = OperatorKernel::curl_free(1.0)?;
    let block = |matrix: Array4<f64>| matrix.index_axis_move(Side(0), 0).index_axis_move(Side(0), 0);
    let exact = block(kernel.matrix(x, z)?);
    // With unit bandwidth E[A] is I and V[A] is (d + 1) I; the print leaves K(0) E[A] out of its example.
    let double = block(kernel.matrix((2.0 * &x).view(), (2.0 * &z).view())?);
    let spread = &double + &Array2::<f64>::eye(DIM) - 2.0 * exact.dot(&exact);
    let constant = 0.5 * spectral_norm(spread.view()) + (DIM as f64 + 1.0);
    let mut table = Table::new("Norm of the variance of curl-free features at one pair of points (figure 1 B)")
        .numbers("frequencies", "D")
        .column("exact", "exact", Show::Number(3))
        .column("measured", "measured", Show::Number(3))
        .column("bound", "proposition 12", Show::Number(3));
    let mut plot = Plot::new(
        "Variance of curl-free features",
        format!("Spectral norm at one pair of points; measured over {draws} draws."),
        Axis::log("number of frequencies D").with_counts(&FREQUENCIES),
        Axis::log("norm of the variance"),
    );
    let mut last = (f64::NAN, f64::NAN);
    for frequencies in FREQUENCIES {
        let measured = run.value(&format!("variance at one pair D={frequencies} draws={draws}"), &mut || {
            let mut sum = Array2::<f64>::zeros((DIM, DIM));
            for draw in 0..draws as u64 {
                let seed = Seed::new(run.seed).child(draw).number();
                let error = block(features(&kernel, frequencies, seed).build::<f64>(DIM)?.estimate(x, z)?) - &exact;
                sum += &error.dot(&error);
            }
            Ok(spectral_norm((sum / draws as f64).view()))
        })?;
        let closed = spectral_norm(block(features(&kernel, frequencies, 0).variance(x, z)?).view());
        let (d, bound) = (frequencies as f64, constant / frequencies as f64);
        table.add(&[&frequencies, &closed, &measured, &bound]);
        for (name, style, value) in [
            ("measured", Style::Scatter, measured),
            ("exact", Style::Line, closed),
            ("proposition 12", Style::Dashed, bound),
        ] {
            plot.line(name, style).push(Point::new(d, value), format!("{name}, D = {frequencies}\n{value:.4}"));
        }
        last = (closed, bound);
    }
    findings.remark(format!(
        "Curl-free features at one pair of points: proposition 12 bounds the variance by {:.1} times what it is.",
        last.1 / last.0
    ));
    findings.plot("variance", plot);
    findings.tables.push(table);
    Ok(())
}

/// The least error at which a falling probability is no larger than that.
fn first_below(probability: f64, failure: &dyn Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (1e-9f64, 1e9f64);
    for _ in 0..200 {
        let middle = (low * high).sqrt();
        *(if failure(middle) > probability { &mut low } else { &mut high }) = middle;
    }
    high
}

/// The largest spectral norm of the blocks.
fn largest_norm(blocks: &Array4<f64>) -> f64 {
    let mut most = 0.0f64;
    for rows in blocks.outer_iter() {
        for block in rows.outer_iter() {
            // The spectral norm is no larger than Frobenius': most blocks need no closer look.
            if block.iter().map(|e| e * e).sum::<f64>() > most * most {
                most = most.max(spectral_norm(block));
            }
        }
    }
    most
}

/// By squaring `MᵀM` until one direction is left.
fn spectral_norm(matrix: ArrayView2<'_, f64>) -> f64 {
    let square = matrix.t().dot(&matrix);
    let trace = |m: &Array2<f64>| m.diag().sum();
    let mut power = square.clone();
    for _ in 0..40 {
        let scale = trace(&power);
        if scale <= 0.0 {
            return 0.0;
        }
        power /= scale;
        power = power.dot(&power);
    }
    // ⟨P, M²⟩/tr P: the mean of the largest eigenvalue over the directions that are left.
    ((&power * &square).sum() / trace(&power)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn spectral_norms_are_those_of_the_largest_singular_value() {
        // A rotation between which 3 and 2 stand: singular values 3 and 2.
        let (c, s) = (0.6, 0.8);
        let rotated = array![[c, -s], [s, c]].dot(&array![[3.0, 0.0], [0.0, -2.0]]).dot(&array![[c, s], [-s, c]]);
        assert!((spectral_norm(rotated.view()) - 3.0).abs() < 1e-9);
        assert!((spectral_norm(Array2::eye(4).view()) - 1.0).abs() < 1e-9);
        assert_eq!(spectral_norm(Array2::zeros((3, 3)).view()), 0.0);
        let blocks = ndarray::stack(Side(0), &[rotated.view(), Array2::eye(2).view()]).unwrap().insert_axis(Side(0));
        assert!((largest_norm(&blocks) - 3.0).abs() < 1e-9);
    }

    #[test]
    fn the_least_error_is_where_the_probability_is_reached() {
        assert!((first_below(0.05, &|error| (-error).exp()) - 20f64.ln()).abs() < 1e-9);
    }
}
