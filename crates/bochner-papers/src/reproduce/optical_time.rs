//! Optical random features, figure 3: time, memory and energy of projections against their size.

use super::*;
use crate::bench::energy::Energy;
use crate::bench::optical::{NO_COUNTER, PROJECTIONS, take};

pub(super) fn run(run: &Run<'_>) -> Outcome<Findings> {
    let theirs = crate::bench::optical::published();
    let device = &theirs.device;
    let (dims, batches): (Vec<usize>, Vec<usize>) = (run.setting("dimensions")?, run.setting("rows")?);
    let largest = batches[batches.len() - 1];
    // Products beyond this take minutes on a few cores.
    let most_flops = run.setting("most operations")?;
    let energy = Energy::find();
    let mut beside = comparison("A GPU's numbers beside this machine's");
    let mut table = Table::new("Projections (n, D) x (D, D): theirs are published, ours measured here")
        .words("machine", "machine")
        .numbers("rows", "n")
        .numbers("features", "D")
        .column("seconds", "time", Show::Duration)
        .numbers("bytes", "memory")
        .numbers("joules", "energy");
    let mut plots = [
        ("Projection time", "seconds"),
        ("Memory of the whole process", "gigabytes"),
        ("Energy of a projection", "joules"),
    ]
    .map(|(title, label)| {
        let n = words::count(largest);
        let subtitle = format!("Projections ({n}, D) x (D, D); the GPU's and the device's values are the paper's.");
        Plot::new(title, subtitle, Axis::log("dimension D"), Axis::log(label))
    });
    let mut findings = Findings::default();
    for &n in &batches {
        // One batch in the figure: lines for the other would cover it.
        let drawn = n == largest;
        let nominal = n as f64 / device.rows_per_second;
        let mut row = |machine: &str, d: usize, seconds: f64, bytes: Option<f64>, joules: Option<f64>| {
            let (bytes, joules) = (bytes.map(|b| Cell::bytes(b as u64)), joules.map(|j| words::rate(j, "J")));
            table.add(&[&machine, &n, &d, &seconds, &bytes, &joules]);
        };
        // A value of each plot, where there is one, and what hovering shows.
        let mut mark = |(name, style): (&str, Style), d: usize, what: &str, values: [Option<(f64, String)>; 3]| {
            for (plot, value) in plots.iter_mut().zip(values).filter(|_| drawn) {
                if let Some((value, tip)) = value {
                    plot.line(name, style).push(Point::new(d as f64, value), format!("{what}\n{tip}"));
                }
            }
        };
        for (name, projection) in PROJECTIONS {
            let mut slower_from = None;
            for &d in &dims {
                // An empty list remembers that it is too large.
                let found = run.values(&format!("{name} n={n} D={d}"), &mut || {
                    let taken = take(projection, n, d, most_flops, energy.as_ref())?;
                    Ok(taken
                        .map_or(Vec::new(), |t| vec![t.seconds, t.memory.unwrap_or(-1.0), t.joules.unwrap_or(-1.0)]))
                })?;
                let [seconds, bytes, joules] = found[..] else { continue };
                let [bytes, joules] = [bytes, joules].map(|v| (v >= 0.0).then_some(v));
                row(&format!("{name}, this machine"), d, seconds, bytes, joules);
                if name == PROJECTIONS[0].0 {
                    for (unit, value) in [("s", Some(seconds)), ("J", joules)] {
                        let key = published::projection_label(n, d, unit);
                        if let Some(value) = value.filter(|_| run.published(&key).is_some()) {
                            run.beside(
                                &mut beside,
                                Show::Number(3),
                                &key,
                                &format!("{name}, {key}"),
                                &Statistic::one(value),
                            );
                        }
                    }
                }
                slower_from = slower_from.or((seconds > nominal).then_some(d));
                let values = [
                    Some((seconds, words::duration(seconds))),
                    bytes.map(|bytes| (bytes / 1e9, words::rate(bytes, "B"))),
                    joules.map(|joules| (joules, format!("{joules:.0} J"))),
                ];
                mark((name, Style::Marks), d, &format!("{name}, D = {}", words::count(d)), values);
            }
            let (rows, time) = (words::count(n), words::duration(nominal));
            findings.remark(match slower_from {
                Some(d) => format!(
                    "{name}, n = {rows}: slower than the device's nominal {time} from D = {} on.",
                    words::count(d)
                ),
                None => format!("{name}, n = {rows}: faster than the device's nominal {time} at every D measured."),
            });
        }
        for point in theirs.points.iter().filter(|p| p.rows == n) {
            row(&point.machine, point.dim, point.seconds, None, Some(point.joules));
            let what = format!("{}, D = {}", point.machine, words::count(point.dim));
            let time = (point.seconds, words::duration(point.seconds));
            let values = [Some(time), None, Some((point.joules, format!("{} J", point.joules)))];
            mark(("P100 GPU", Style::Marks), point.dim, &what, values);
        }
        let joules = nominal * device.watts;
        row(&device.machine, device.largest_dim, nominal, None, Some(joules));
        for end in [dims[0], dims[dims.len() - 1].min(device.largest_dim)] {
            let values = [Some((nominal, words::duration(nominal))), None, Some((joules, format!("{joules:.0} J")))];
            mark(("device, nominal", Style::Dashed), end, "nominal", values);
        }
    }
    let [times, memories, energies] = plots;
    findings.plot("time", times);
    findings.plot("memory", memories);
    match energy {
        Some(_) => findings.plot("energy", energies),
        None => findings.remark(format!("Energy: {NO_COUNTER}; the paper's joules stand alone in the table.")),
    }
    findings.remark(
        "Dense weights are stored, as on the GPU; matrix-free weights are the same numbers, made again; structured ones \
         are another distribution with the same mean (see docs/mathematics/optical.md).",
    );
    findings.tables.push(table);
    if !beside.is_empty() {
        findings.tables.push(beside);
    }
    Ok(findings)
}
