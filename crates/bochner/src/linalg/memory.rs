//! Allocations that may fail: sizes come from callers, and a failed `vec!` ends the process.

use crate::error::{Error, Result};

/// Bytes that are asked for without looking at the machine.
const SMALL: usize = 1 << 26;

/// `count` zeros; no count means one that overflowed.
///
/// # Errors
/// [`Error::Budget`] for more bytes than the machine has (where that is known) or the allocator gives.
pub(crate) fn zeros<T: Copy + Default>(what: &'static str, count: Option<usize>, remedy: &str) -> Result<Vec<T>> {
    let bytes = count.and_then(|count| count.checked_mul(size_of::<T>())).filter(|&bytes| bytes <= isize::MAX as usize);
    // Asking the system takes longer than a small product.
    let budget = match bytes {
        Some(..SMALL) => SMALL as u64,
        _ => physical_memory().unwrap_or(isize::MAX as u64),
    };
    let refused = |needed| Error::Budget { what, needed, budget, remedy: remedy.to_owned() };
    let (Some(count), Some(bytes)) = (count, bytes) else { return Err(refused(u64::MAX)) };
    if bytes as u64 > budget {
        return Err(refused(bytes as u64));
    }
    let mut data = Vec::new();
    data.try_reserve_exact(count).map_err(|_| refused(bytes as u64))?;
    data.resize(count, T::default());
    Ok(data)
}

/// Total memory of the machine in bytes, where the operating system says so in a file.
fn physical_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_sizes_are_errors_and_small_ones_are_zeros() {
        for count in [None, Some(usize::MAX), Some(usize::MAX / 8), Some(isize::MAX as usize / 8)] {
            let error = zeros::<f64>("a test", count, "ask for less").unwrap_err();
            assert!(matches!(error, Error::Budget { what: "a test", .. }), "{error}");
        }
        assert_eq!(zeros::<f32>("a test", Some(3), "").unwrap(), [0.0; 3]);
    }
}
