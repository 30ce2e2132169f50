//! Files in blocks: CSV against pandas, NPY against the raw bytes.

use super::timing::seconds;
use super::{Bar, Bench, Line};
use bochner::random::{Role, Seed, Stream};
use bochner::rows::RowSource;
use bochner_table::failure::{Failure, Outcome};
use bochner_table::read::{Data, Element, Input, Options, Selection};
use std::fmt::Write as _;
use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

const COLUMNS: usize = 20;

pub(super) fn run(bench: &Bench<'_>) -> Outcome<Vec<Line>> {
    let folder = Scratch::new()?;
    let csv = folder.path("numbers.csv");
    // A row takes about 200 bytes.
    let rows = if bench.full { 5_000_000 } else { 250_000 };
    bench.progress.at("writing a CSV file".into())?;
    write_csv(&csv, rows)?;
    let bytes = std::fs::metadata(&csv)?.len() as f64;
    let size = format!("CSV, {:.2} GB, {COLUMNS} numbers a row", bytes / 1e9);
    bench.progress.at("reading the CSV file".into())?;
    let raw = read_raw(&csv)?;
    let ours = read_all::<f64>(&csv)?;
    let mut lines = vec![Line::speed(&size, bytes / ours, "raw bytes", bytes / raw, "B/s", Bar::None)];
    if let Some(peers) = bench.peers {
        bench.progress.at("pandas.read_csv".into())?;
        let theirs = peers.time("read_csv", &[csv.display().to_string()])?;
        for (case, seconds) in theirs {
            lines.push(Line::speed(&size, bytes / ours, &case, bytes / seconds, "B/s", Bar::AtLeast(3.0)));
        }
    }

    let npy = folder.path("numbers.npy");
    let rows = if bench.full { 250_000 } else { 60_000 };
    bench.progress.at("reading an NPY file".into())?;
    write_npy(&npy, rows, 784)?;
    let bytes = std::fs::metadata(&npy)?.len() as f64;
    let (raw, ours) = (read_raw(&npy)?, read_all::<f32>(&npy)?);
    let case = format!("NPY f32, {:.2} GB", bytes / 1e9);
    lines.push(Line::speed(case, bytes / ours, "raw bytes", bytes / raw, "B/s", Bar::AtLeast(0.8)));

    let idx = folder.path("numbers.idx");
    bench.progress.at("reading an IDX file".into())?;
    // As many bytes as the other file has: what opening a file takes would be a twentieth of reading a fifth of a gigabyte.
    write_idx(&idx, 4 * rows, 784)?;
    let bytes = std::fs::metadata(&idx)?.len() as f64;
    let (raw, ours) = (read_raw(&idx)?, read_all::<f32>(&idx)?);
    let case = format!("IDX u8 to f32, {:.2} GB", bytes / 1e9);
    lines.push(Line::speed(case, bytes / ours, "raw bytes", bytes / raw, "B/s", Bar::AtLeast(0.8)));
    Ok(lines)
}

/// Seconds of reading a file with one reused buffer, which begins with a page: elsewhere it may take six times as long.
fn read_raw(path: &Path) -> Outcome<f64> {
    const PAGE: usize = 4096;
    let mut pages = vec![0; (1 << 20) + PAGE];
    let first = pages.as_ptr().addr().wrapping_neg() % PAGE;
    let buffer = &mut pages[first..][..1 << 20];
    let mut failure = None;
    let time = seconds(1.0, || {
        let mut once = || -> std::io::Result<()> {
            let mut file = File::open(path)?;
            while file.read(buffer)? > 0 {
                black_box(&mut *buffer);
            }
            Ok(())
        };
        failure = once().err().or(failure.take());
    });
    failure.map_or(Ok(time), |e| Err(e.into()))
}

/// Seconds of reading a file in blocks of rows.
fn read_all<R: Element>(path: &Path) -> Outcome<f64> {
    let mut failure: Option<Failure> = None;
    let time = seconds(1.0, || {
        let once = || -> Outcome {
            let data = Data::open(Input::open(path)?, None, &Selection::default(), &Options::default())?;
            data.rows::<R>().for_each_block(&mut |block| {
                black_box(block);
                Ok(())
            })?;
            Ok(())
        };
        failure = once().err().or(failure.take());
    });
    failure.map_or(Ok(time), Err)
}

fn write_csv(path: &Path, rows: usize) -> Outcome {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let names: Vec<String> = (1..=COLUMNS).map(|j| format!("x{j}")).collect();
    writeln!(out, "{}", names.join(","))?;
    let stream = Stream::new(Seed::new(1), Role::Direction, 0);
    let mut numbers = [0.0; COLUMNS];
    let mut line = String::new();
    // Rows repeat after a while: writing should not take longer than reading.
    let distinct: Vec<String> = (0..rows.min(20_000))
        .map(|i| {
            stream.normals_from(i * COLUMNS, &mut numbers);
            line.clear();
            for (j, v) in numbers.iter().enumerate() {
                let _ = write!(line, "{}{v:.7}", if j == 0 { "" } else { "," });
            }
            line.push('\n');
            line.clone()
        })
        .collect();
    for i in 0..rows {
        out.write_all(distinct[i % distinct.len()].as_bytes())?;
    }
    out.flush()?;
    Ok(())
}

fn write_npy(path: &Path, rows: usize, columns: usize) -> Outcome {
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    out.write_all(b"\x93NUMPY\x01\x00")?;
    out.write_all(&(header.len() as u16).to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    let row: Vec<u8> = (0..columns).flat_map(|j| (j as f32).to_le_bytes()).collect();
    for _ in 0..rows {
        out.write_all(&row)?;
    }
    out.flush()?;
    Ok(())
}

fn write_idx(path: &Path, rows: usize, columns: usize) -> Outcome {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    out.write_all(&[0, 0, 8, 2])?;
    out.write_all(&(rows as u32).to_be_bytes())?;
    out.write_all(&(columns as u32).to_be_bytes())?;
    let row: Vec<u8> = (0..columns).map(|j| j as u8).collect();
    for _ in 0..rows {
        out.write_all(&row)?;
    }
    out.flush()?;
    Ok(())
}

/// A folder for files of one run, removed with them.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Outcome<Self> {
        let folder = std::env::temp_dir().join(format!("bochner-bench-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Ok(Scratch(folder))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
