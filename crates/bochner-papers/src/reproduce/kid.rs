//! Thesis, figure 4.11 and table 4.2: the spread of the kernel inception distance from sketches, and of the block estimator.

use super::*;
use bochner::metrics::{FeatureSums, kid, mmd2, mmd2_from_features};

/// Draws over which the thesis measures deviations.
const DRAWS: usize = 1000;
/// The padded dimension, in which the thesis counts features.
const DIM: usize = 1024;

pub(super) fn run(run: &Run<'_>) -> Outcome<Findings> {
    let count = run.choose(500, 2000);
    let load = |name: &str| -> Outcome<Array2<f64>> {
        Ok(double(run.data.images(name)?.1.sample(count, 5).rows.view()) / 255.0)
    };
    let (x, y) = (load("mnist")?, load("fashion-mnist")?);
    let draws = run.draws(20, 100, DRAWS).max(2);
    let mut findings = Findings::default();
    let mut ratios = Table::new("Deviation over that of CtR-TensorSRHT with as many features")
        .words("sketch", "sketch")
        .numbers("degree", "p")
        .numbers("features", "D")
        .column("paper", "paper", Show::Fixed(2))
        .column("ours", "ours", Show::Fixed(2))
        .column("difference", "difference", Show::Fixed(2));
    for degree in [3, 6] {
        let exact = run.values(&format!("exact p={degree} {count}"), &mut || {
            let start = Instant::now();
            let value = mmd2(&Polynomial::new(degree, 1.0 / x.ncols() as f64, 1.0)?, x.view(), y.view())?;
            Ok(vec![value, start.elapsed().as_secs_f64()])
        })?;
        let mut table = Table::new(format!(
            "p = {degree}: distance between {count} rows each; exact value {:.5} in {:.2} s",
            exact[0], exact[1]
        ))
        .words("estimator", "estimator")
        .numbers("size", "features or block rows")
        .column("mean", "mean", Show::Number(4))
        .column("deviation", "deviation", Show::Number(3))
        .column("relative", "deviation / value", Show::Percent(2))
        .column("seconds", "time", Show::Duration);
        let mut plot = Plot::new(
            format!("Spread of the kernel inception distance, p = {degree}"),
            format!(
                "Standard deviation over {draws} draws against the time of one estimate; sketches with D = d to 4d, d = {DIM}."
            ),
            Axis::log("milliseconds"),
            Axis::log("standard deviation"),
        );
        let mut spreads = BTreeMap::new();
        for (name, sketch, weights) in SKETCHES {
            for times in 1..=4 {
                let features = times * DIM;
                let key = format!("{name} p={degree} {count} D={features} draws={draws}");
                let (n_components, gamma) = (times * DIM, 1.0 / x.ncols() as f64);
                let spec = PolynomialSpec { degree, gamma, coef0: 1.0, sketch, weights, ..PolynomialSpec::default() };
                let spec = PolynomialSpec { n_components, ..spec };
                let values = run.values(&key, &mut || estimates(&spec, run.seed, draws, [&x, &y]))?;
                let (Statistic { mean, deviation, .. }, seconds) = (Statistic::of(&values[..draws]), values[draws]);
                table.add(&[&name, &features, &mean, &deviation, &(deviation / exact[0]), &seconds]);
                let tip = format!("{name}, D = {features}\n{deviation:.2e} in {:.1} ms", 1e3 * seconds);
                plot.line(name, Style::Marks).push(Point::new(1e3 * seconds, deviation), tip);
                spreads.insert((name, times), deviation);
            }
            table.start_group();
        }
        if degree == 3 {
            let name = "one block of rows";
            // A block of all rows is the same in every draw, and has no spread.
            for rows in [50, 100, 250, 500].into_iter().filter(|&rows| rows < count) {
                let values = run.values(&format!("blocks {count} rows={rows} draws={draws}"), &mut || {
                    let start = Instant::now();
                    let found = kid(x.view(), y.view(), draws, rows, Seed::new(run.seed))?;
                    Ok(vec![found.mean, found.std, start.elapsed().as_secs_f64() / draws as f64])
                })?;
                let [mean, deviation, seconds] = values[..] else { continue };
                table.add(&[&name, &rows, &mean, &deviation, &(deviation / exact[0]), &seconds]);
                let tip = format!("{rows} rows\n{deviation:.2e}");
                plot.line(name, Style::Marks).push(Point::new(1e3 * seconds, deviation), tip);
            }
        }
        findings.tables.push(table);
        findings.plot(format!("spread-time-p{degree}"), plot);
        let mut wins = 0;
        for (name, ..) in SKETCHES.into_iter().skip(1) {
            for times in 1..=4 {
                let paper = |name: &str| run.published(&format!("p={degree} D={times}d {name}"));
                let ours = spreads[&(name, times)] / spreads[&(CTR, times)];
                let theirs = paper(name).zip(paper(CTR)).map(|(a, b)| a / b);
                wins += usize::from(ours > 1.0);
                let difference = theirs.map(|theirs| ours - theirs);
                ratios.add(&[&name, &(degree as usize), &(times * DIM), &theirs, &ours, &difference]);
            }
            ratios.start_group();
        }
        findings.remark(format!(
            "p = {degree}: CtR-TensorSRHT spreads less than another sketch of the same size in {wins} of 8 comparisons; in the \
             thesis in all. A deviation over {draws} draws is itself known to {:.0} %.",
            100.0 / (2.0 * (draws as f64 - 1.0)).sqrt()
        ));
    }
    findings.tables.insert(0, ratios);
    findings.remark(
        "The spread over sketch draws is that of the sketch on fixed rows; the spread over blocks also contains that of \
         choosing rows. They measure different things and are shown side by side only as the thesis does.",
    );
    findings.size("draws", draws, DRAWS);
    Ok(findings)
}

/// The distance by so many draws of a sketch, and the mean seconds of one.
fn estimates(base: &PolynomialSpec, seed: u64, draws: usize, parts: [&Array2<f64>; 2]) -> Outcome<Vec<f64>> {
    let (mut found, mut seconds) = (Vec::with_capacity(draws + 1), Vec::with_capacity(draws));
    for draw in 0..draws as u64 {
        let spec = PolynomialSpec { seed: Seed::new(seed).child(draw).number(), ..base.clone() };
        let map = spec.build::<f64>(parts[0].ncols())?;
        let start = Instant::now();
        let sums = |rows: &Array2<f64>| {
            let mut sums = FeatureSums::new(map.output_dim());
            for block in rows.axis_chunks_iter(Side(0), 1000) {
                sums.add(map.transform(block)?.view())?;
            }
            Ok::<_, bochner::Error>(sums)
        };
        found.push(mmd2_from_features(&sums(parts[0])?, &sums(parts[1])?)?);
        seconds.push(start.elapsed().as_secs_f64());
    }
    found.push(Statistic::of(&seconds).mean);
    Ok(found)
}
