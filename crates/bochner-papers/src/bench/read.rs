//! Files in blocks: CSV against pandas, NPY against the raw bytes.

use super::*;
use bochner::random::Stream;
use bochner_table::read::{Data, Element, Input, Options, Selection};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;

const COLUMNS: usize = 20;

pub(super) fn run(bench: &Bench<'_>) -> Outcome {
    let folder = Scratch::new("read")?;
    let csv = folder.path("numbers.csv");
    bench.at("writing a CSV file")?;
    // A row takes about 200 bytes.
    write_csv(&csv, bench.size(5_000_000, 250_000))?;
    // Bytes and our rate, the rate beside that of the raw bytes.
    let against_raw = |path: &Path, name: &str, bar, seconds: &dyn Fn(&Path) -> Outcome<f64>| -> Outcome<_> {
        bench.at(format!("reading the file {name}"))?;
        let bytes = std::fs::metadata(path)?.len() as f64;
        let (raw, ours) = (read_raw(path)?, seconds(path)?);
        let case = name.replace("SIZE", &format!("{:.2} GB", bytes / 1e9));
        bench.line(Line::speed(&case, bytes / ours, "raw bytes", bytes / raw, "B/s", bar))?;
        Ok((case, bytes, bytes / ours))
    };
    let (case, bytes, rate) =
        against_raw(&csv, &format!("CSV, SIZE, {COLUMNS} numbers a row"), Bar::None, &read_all::<f64>)?;
    let npy = folder.path("numbers.npy");
    let rows = bench.size(250_000, 60_000);
    write_npy(&npy, rows, 784)?;
    against_raw(&npy, "NPY f32, SIZE", Bar::AtLeast(0.8), &read_all::<f32>)?;
    let idx = folder.path("numbers.idx");
    // As many bytes as the other file has: what opening a file takes would be a twentieth of reading a fifth of a gigabyte.
    write_idx(&idx, 4 * rows, 784)?;
    against_raw(&idx, "IDX u8 to f32, SIZE", Bar::AtLeast(0.8), &read_all::<f32>)?;
    let peer = bench.peer("pandas.read_csv", "read_csv", &[&csv.display()])?;
    let theirs = peer.iter().map(|(name, s)| Line::speed(&case, rate, name, bytes / s, "B/s", Bar::AtLeast(3.0)));
    bench.lines(theirs)
}

/// Seconds of reading a file with one reused buffer, which begins with a page: elsewhere it may take six times as long.
fn read_raw(path: &Path) -> Outcome<f64> {
    const PAGE: usize = 4096;
    let mut pages = vec![0; (1 << 20) + PAGE];
    let first = pages.as_ptr().addr().wrapping_neg() % PAGE;
    let buffer = &mut pages[first..][..1 << 20];
    attempt(1.0, || {
        let mut file = File::open(path)?;
        while file.read(buffer)? > 0 {
            black_box(&mut *buffer);
        }
        Ok::<_, std::io::Error>(())
    })
}

/// Seconds of reading a file in blocks of rows.
fn read_all<R: Element>(path: &Path) -> Outcome<f64> {
    attempt(1.0, || {
        let data = Data::open(Input::open(path)?, None, &Selection::default(), &Options::default())?;
        data.rows::<R>().for_each_block(&mut |block| {
            black_box(block);
            Ok(())
        })?;
        Ok::<_, Failure>(())
    })
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
    Ok(out.flush()?)
}

/// A file that begins with `header` and has the same row again and again.
fn write_rows(path: &Path, header: &[u8], row: &[u8], rows: usize) -> Outcome {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    out.write_all(header)?;
    for _ in 0..rows {
        out.write_all(row)?;
    }
    Ok(out.flush()?)
}

fn write_npy(path: &Path, rows: usize, columns: usize) -> Outcome {
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let row: Vec<u8> = (0..columns).flat_map(|j| (j as f32).to_le_bytes()).collect();
    let length = (header.len() as u16).to_le_bytes();
    write_rows(path, &[b"\x93NUMPY\x01\x00", &length[..], header.as_bytes()].concat(), &row, rows)
}

fn write_idx(path: &Path, rows: usize, columns: usize) -> Outcome {
    let row: Vec<u8> = (0..columns).map(|j| j as u8).collect();
    let sizes = [rows, columns].map(|size| (size as u32).to_be_bytes());
    write_rows(path, &[&[0, 0, 8, 2], &sizes[0][..], &sizes[1]].concat(), &row, rows)
}
