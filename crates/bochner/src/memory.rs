//! Memory: what the machine has left, and arrays that say so where they do not fit.
//!
//! Sizes come from callers, and a request that cannot be met ends the process. So whoever makes an array whose size a caller
//! decides asks here first: sizes are multiplied with care, and what is refused is refused before anything is made.

use crate::error::{Error, Result};
use ndarray::Array2;
use std::borrow::Cow;
use std::fs::read_to_string;

/// Bytes that are asked for without looking at the machine, which takes longer than a small product.
const SMALL: u64 = 1 << 26;

/// Bytes that this process can still have: what the machine has free, and what limits of the process and of its container
/// leave. `u64::MAX` where the operating system does not say so in files.
///
/// ```
/// assert!(bochner::memory::available() > 0);
/// ```
pub fn available() -> u64 {
    [machine(), limits(), container()].into_iter().flatten().min().unwrap_or(u64::MAX)
}

/// Bytes of an array of these lengths; `u64::MAX` stands for more than can be counted.
pub fn bytes<T>(lengths: &[usize]) -> u64 {
    lengths.iter().fold(size_of::<T>() as u64, |bytes, &length| bytes.saturating_mul(length as u64))
}

/// Refuses a need that is not there; `remedy` is told how many bytes are.
///
/// # Errors
/// [`Error::Memory`].
pub fn need(what: impl Into<Cow<'static, str>>, needed: u64, remedy: impl FnOnce(u64) -> String) -> Result<()> {
    if needed <= SMALL {
        return Ok(());
    }
    // No allocation is larger, whatever the machine has.
    let available = available().min(isize::MAX as u64);
    if needed <= available {
        return Ok(());
    }
    Err(Error::Memory { what: what.into(), needed, available, remedy: remedy(available) })
}

/// The error of an allocation that failed although there seemed to be room for it.
pub(crate) fn refused(what: impl Into<Cow<'static, str>>, needed: u64, remedy: String) -> Error {
    Error::Memory { what: what.into(), needed, available: available().min(needed), remedy }
}

/// `count` zeros; no count means one that overflowed.
///
/// # Errors
/// [`Error::Memory`] for more bytes than there are, or than the allocator gives.
pub(crate) fn zeros<T: Copy + Default>(what: &'static str, count: Option<usize>, remedy: &str) -> Result<Vec<T>> {
    let needed = count.map_or(u64::MAX, |count| bytes::<T>(&[count]));
    need(what, needed, |_| remedy.to_owned())?;
    let (mut data, count) = (Vec::new(), count.unwrap_or(usize::MAX));
    data.try_reserve_exact(count).map_err(|_| refused(what, needed, remedy.to_owned()))?;
    data.resize(count, T::default());
    Ok(data)
}

/// A matrix of one number, such as 0; `remedy` is told how many rows would fit.
///
/// # Errors
/// As [`need`].
pub fn filled<T: Clone>(
    what: &'static str,
    (rows, cols): (usize, usize),
    number: T,
    remedy: impl FnOnce(u64) -> String,
) -> Result<Array2<T>> {
    shape::<T>(what, rows, cols, remedy)?;
    Ok(Array2::from_elem((rows, cols), number))
}

/// Refuses a matrix that does not fit; `remedy` is told how many rows would.
///
/// # Errors
/// As [`need`].
pub(crate) fn shape<T>(what: &'static str, rows: usize, cols: usize, remedy: impl FnOnce(u64) -> String) -> Result<()> {
    let needed = bytes::<T>(&[rows, cols]);
    if needed <= SMALL {
        return Ok(());
    }
    let shown = format!("{what} ({} x {})", crate::words::count(rows), crate::words::count(cols));
    need(shown, needed, |free| remedy(free / bytes::<T>(&[cols]).max(1)))
}

/// The remedy of what can be done in blocks of rows.
pub fn in_blocks(rows: u64) -> String {
    match rows {
        0 => "not even one row fits: ask for fewer columns".to_owned(),
        rows => format!("take blocks of at most {} rows", crate::words::count(rows as usize)),
    }
}

/// The number after `name` in a text of lines, times 1024 where it is in kB.
fn after(text: &str, name: &str) -> Option<u64> {
    let mut words = text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace();
    let number: u64 = words.next()?.parse().ok()?;
    number.checked_mul(if words.next() == Some("kB") { 1024 } else { 1 })
}

/// What the machine has free, pages of the disk that it would give back among it.
fn machine() -> Option<u64> {
    let text = read_to_string("/proc/meminfo").ok()?;
    Some(after(&text, "MemAvailable:")?.saturating_add(after(&text, "SwapFree:").unwrap_or(0)))
}

/// What limits of the process (`ulimit`) leave.
fn limits() -> Option<u64> {
    let (limits, status) = (read_to_string("/proc/self/limits").ok()?, read_to_string("/proc/self/status").ok()?);
    let left = |limit: &str, used: &str| Some(after(&limits, limit)?.saturating_sub(after(&status, used)?));
    [left("Max address space", "VmSize:"), left("Max data size", "VmData:")].into_iter().flatten().min()
}

/// What the limits of the container (control group), and of those around it, leave.
fn container() -> Option<u64> {
    let groups = read_to_string("/proc/self/cgroup").ok()?;
    let read = |path: &std::path::Path, name: &str| read_to_string(path.join(name)).ok();
    let number = |path: &std::path::Path, name: &str| read(path, name)?.trim().parse::<u64>().ok();
    let left = |path: &std::path::Path| {
        let (limit, used, idle) = match number(path, "memory.max") {
            Some(limit) => (limit, number(path, "memory.current")?, "inactive_file "),
            None => {
                let limit = number(path, "memory.limit_in_bytes")?;
                (limit, number(path, "memory.usage_in_bytes")?, "total_inactive_file ")
            }
        };
        // Pages of files count as used, and are given back.
        let idle = read(path, "memory.stat").and_then(|text| after(&text, idle)).unwrap_or(0);
        Some(limit.saturating_sub(used.saturating_sub(idle)))
    };
    let paths = groups.lines().filter_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let root = match controllers {
            "" => "/sys/fs/cgroup",
            "memory" => "/sys/fs/cgroup/memory",
            _ => return None,
        };
        Some((root, format!("{root}{path}")))
    });
    let all = paths.flat_map(|(root, path)| {
        let path = std::path::PathBuf::from(path);
        path.ancestors().take_while(|folder| folder.starts_with(root)).filter_map(left).collect::<Vec<_>>()
    });
    all.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_sizes_are_errors_and_small_ones_are_zeros() {
        for count in [None, Some(usize::MAX), Some(usize::MAX / 8), Some(isize::MAX as usize / 8)] {
            let error = zeros::<f64>("a test", count, "ask for less").unwrap_err();
            assert!(matches!(&error, Error::Memory { what, .. } if what == "a test"), "{error}");
        }
        assert_eq!(zeros::<f32>("a test", Some(3), "").unwrap(), [0.0; 3]);
        let refused = filled("entries", (1 << 40, 1 << 40), 0u8, in_blocks).unwrap_err().to_string();
        assert!(refused.contains("1,099,511,627,776 x 1,099,511,627,776") && refused.contains("EB"), "{refused}");
        assert_eq!(filled("entries", (2, 3), 1, in_blocks).unwrap().sum(), 6);
    }

    #[test]
    fn numbers_are_found_in_the_files_of_the_system() {
        let text =
            "MemTotal:       16 kB\nMemAvailable:    3 kB\nMax data size   7 9 bytes\nMax cpu time   unlimited\n";
        assert_eq!((after(text, "MemAvailable:"), after(text, "Max data size")), (Some(3072), Some(7)));
        assert_eq!((after(text, "Max cpu time"), after(text, "SwapFree:")), (None, None));
        if cfg!(target_os = "linux") {
            assert!(machine().is_some_and(|bytes| bytes > 1 << 20));
            assert!(available() < u64::MAX);
        }
    }
}
