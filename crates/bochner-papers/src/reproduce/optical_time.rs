//! Optical random features, figure 3: time, memory and energy of projections against their size.

use super::{Experiment, Findings, Run};
use crate::bench::energy::Energy;
use crate::bench::optical::{NO_COUNTER, PROJECTIONS, published, take};
use bochner::words;
use bochner_report::plot::{Axis, Plot, Point, Series, Style};
use bochner_report::table::{Cell, Table};
use bochner_table::failure::Outcome;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "optical-time",
    what: "time, memory and energy of (n, D) x (D, D) projections against D, beside a GPU and the optical device",
    source: "optical, figure 3; GPU values as published, those of the device nominal: rows over 2 kHz, times 30 W",
    needs: &[],
    minutes: 9.0,
    run,
};

fn run(run: &Run<'_>) -> Outcome<Findings> {
    let published = published();
    let device = &published.device;
    let dims: &[usize] = run.choose(
        &[1024, 2048, 4096, 16_384, 65_536][..],
        &[1024, 2048, 4096, 8192, 20_000, 50_000, 65_536, 262_144, 1_000_000][..],
    );
    let batches: &[usize] = run.choose(&[1000][..], &[1000, 3000][..]);
    // Products beyond this take minutes on a few cores.
    let most_flops = run.choose(2e11, 2e13);
    let energy = Energy::find();
    let mut table = Table::new("Projections (n, D) x (D, D): theirs are published, ours measured here")
        .words("machine", "machine")
        .numbers("rows", "n")
        .numbers("features", "D")
        .numbers("seconds", "time")
        .numbers("bytes", "memory")
        .numbers("joules", "energy");
    let mut row = |machine: &str, n: usize, d: usize, seconds: f64, memory: Option<f64>, joules: Option<f64>| {
        let missing = || Cell::missing("–");
        table.push(vec![
            Cell::text(machine),
            Cell::count(n),
            Cell::count(d),
            Cell::duration(seconds),
            memory.map_or_else(missing, |bytes| Cell::bytes(bytes as u64)),
            joules.map_or_else(missing, |joules| Cell::text(words::rate(joules, "J"))),
        ]);
    };
    let (mut times, mut memories, mut energies) = (Vec::new(), Vec::new(), Vec::new());
    let mut crossings = Vec::new();
    for &n in batches {
        // One batch in the figure: lines for the other would cover it.
        let drawn = n == batches[batches.len() - 1];
        for (index, (name, projection)) in PROJECTIONS.into_iter().enumerate() {
            let (mut time, mut memory, mut joules) = (
                Series::new(name, Style::Marks, index),
                Series::new(name, Style::Marks, index),
                Series::new(name, Style::Marks, index),
            );
            let mut slower_from = None;
            for &d in dims {
                // An empty list remembers that it is too large.
                let found = run.values(&format!("{name} n={n} D={d}"), || {
                    let taken = take(projection, n, d, most_flops, energy.as_ref())?;
                    Ok(taken
                        .map_or(Vec::new(), |t| vec![t.seconds, t.memory.unwrap_or(-1.0), t.joules.unwrap_or(-1.0)]))
                })?;
                let [seconds, bytes, spent] = found[..] else { continue };
                let known = |v: f64| (v >= 0.0).then_some(v);
                row(&format!("{name}, this machine"), n, d, seconds, known(bytes), known(spent));
                if seconds > n as f64 / device.rows_per_second && slower_from.is_none() {
                    slower_from = Some(d);
                }
                if drawn {
                    let at = format!("{name}, D = {}\n", words::count(d));
                    time.push(Point::new(d as f64, seconds), format!("{at}{}", words::duration(seconds)));
                    if let Some(bytes) = known(bytes) {
                        memory.push(Point::new(d as f64, bytes / 1e9), format!("{at}{}", words::rate(bytes, "B")));
                    }
                    if let Some(spent) = known(spent) {
                        joules.push(Point::new(d as f64, spent), format!("{at}{spent:.0} J"));
                    }
                }
            }
            crossings.push(match slower_from {
                Some(d) => format!(
                    "{name}, n = {}: slower than the device's nominal {} from D = {} on.",
                    words::count(n),
                    words::duration(n as f64 / device.rows_per_second),
                    words::count(d)
                ),
                None => format!(
                    "{name}, n = {}: faster than the device's nominal {} at every D measured.",
                    words::count(n),
                    words::duration(n as f64 / device.rows_per_second)
                ),
            });
            if drawn {
                times.push(time);
                memories.push(memory);
                energies.push(joules);
            }
        }
        let mut gpu = [Series::new("P100 GPU", Style::Marks, 3), Series::new("P100 GPU", Style::Marks, 3)];
        for point in published.points.iter().filter(|p| p.rows == n) {
            row(&point.machine, n, point.dim, point.seconds, None, Some(point.joules));
            let at = format!("{}, D = {}\n", point.machine, words::count(point.dim));
            gpu[0].push(Point::new(point.dim as f64, point.seconds), format!("{at}{}", words::duration(point.seconds)));
            gpu[1].push(Point::new(point.dim as f64, point.joules), format!("{at}{} J", point.joules));
        }
        let nominal = n as f64 / device.rows_per_second;
        row(&device.machine, n, device.largest_dim, nominal, None, Some(nominal * device.watts));
        if drawn {
            let ends = [dims[0], dims[dims.len() - 1].min(device.largest_dim)];
            let mut flat =
                [Series::new("device, nominal", Style::Dashed, 4), Series::new("device, nominal", Style::Dashed, 4)];
            for end in ends {
                flat[0].push(Point::new(end as f64, nominal), format!("nominal\n{}", words::duration(nominal)));
                let joules = nominal * device.watts;
                flat[1].push(Point::new(end as f64, joules), format!("nominal\n{joules:.0} J"));
            }
            let ([time, joules], [flat_time, flat_joules]) = (gpu, flat);
            times.extend([time, flat_time]);
            energies.extend([joules, flat_joules]);
        }
    }
    let n = words::count(batches[batches.len() - 1]);
    let plot = |title: &str, label: &str, series: Vec<Series>| Plot {
        title: title.into(),
        subtitle: format!("Projections ({n}, D) x (D, D); the GPU's and the device's values are the paper's."),
        x: Axis::log("dimension D"),
        y: Axis::log(label),
        series,
    };
    let mut plots = vec![
        ("time".to_owned(), plot("Projection time", "seconds", times)),
        ("memory".to_owned(), plot("Memory of the whole process", "gigabytes", memories)),
    ];
    let mut remarks = crossings;
    match energy {
        Some(_) => plots.push(("energy".to_owned(), plot("Energy of a projection", "joules", energies))),
        None => remarks.push(format!("Energy: {NO_COUNTER}; the paper's joules stand alone in the table.")),
    }
    remarks.push(
        "Dense weights are stored, as on the GPU; matrix-free weights are the same numbers, made again; structured ones \
         are another distribution with the same mean (see docs/mathematics/optical.md)."
            .into(),
    );
    Ok(Findings { tables: vec![table], plots, remarks })
}
