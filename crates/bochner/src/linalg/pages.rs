//! Large fresh arrays.

use crate::error::Result;
use crate::memory;
use crate::scalar::Scalar;
use ndarray::Array2;

/// Bytes from which huge pages are asked for: below, the kernel would rarely find a whole aligned one inside.
const HUGE_FROM: usize = 8 << 20;

/// `len` zeros; large arrays in huge pages where the system offers them.
///
/// Zeros come from fresh pages, so nothing is written here and every page is first touched by the thread that fills it.
/// Filling 410 MB took 215 ms in fresh pages of 4 KiB and 47 ms in fresh huge pages.
///
/// No length means one that overflowed; `remedy` is told how many bytes are free.
///
/// # Errors
/// [`Error::Memory`](crate::Error::Memory).
#[allow(unsafe_code)]
pub fn zeroed<T: Scalar>(what: &'static str, len: Option<usize>, remedy: impl Fn(u64) -> String) -> Result<Vec<T>> {
    let needed = len.map_or(u64::MAX, |len| memory::bytes::<T>(&[len]));
    memory::need(what, needed, &remedy)?;
    let refused = || memory::refused(what, needed, remedy(memory::available()));
    let len = len.ok_or_else(refused)?;
    let layout = std::alloc::Layout::array::<T>(len).map_err(|_| refused())?;
    if layout.size() == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the layout has a size; `Scalar` is sealed and its four types are plain floats or pairs of them, for which
    // zero bytes are the number 0. The vector is built with the allocation's own layout.
    let numbers = unsafe {
        let first = std::alloc::alloc_zeroed(layout);
        if first.is_null() {
            return Err(refused());
        }
        Vec::from_raw_parts(first.cast::<T>(), len, len)
    };
    if layout.size() >= HUGE_FROM {
        ask_for_huge_pages(numbers.as_ptr() as usize, layout.size());
    }
    Ok(numbers)
}

/// A matrix of zeros in such memory; `remedy` is told how many rows would fit.
///
/// # Errors
/// [`Error::Memory`](crate::Error::Memory).
pub fn zeroed_matrix<T: Scalar>(
    what: &'static str,
    (rows, cols): (usize, usize),
    remedy: impl Fn(u64) -> String,
) -> Result<Array2<T>> {
    memory::shape::<T>(what, rows, cols, &remedy)?;
    let row = memory::bytes::<T>(&[cols]).max(1);
    let numbers = zeroed(what, rows.checked_mul(cols), |free| remedy(free / row))?;
    Ok(Array2::from_shape_vec((rows, cols), numbers).expect("as many numbers as the shape says"))
}

/// [`zeroed`] for bytes.
pub(crate) fn zeroed_bytes(len: usize) -> Vec<i8> {
    let numbers = vec![0; len];
    if len >= HUGE_FROM {
        ask_for_huge_pages(numbers.as_ptr() as usize, len);
    }
    numbers
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn ask_for_huge_pages(start: usize, bytes: usize) {
    const PAGE: usize = 2 << 20;
    let from = start.next_multiple_of(PAGE);
    let to = (start + bytes) / PAGE * PAGE;
    if from < to {
        // SAFETY: the range lies inside an allocation of ours, and this advice changes no contents. A refusal (an error
        // code) leaves small pages, which are only slower.
        unsafe { libc::madvise(from as *mut libc::c_void, to - from, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn ask_for_huge_pages(_start: usize, _bytes: usize) {}

#[cfg(test)]
mod tests {
    use super::*;
    use num_complex::Complex;

    #[test]
    fn fresh_arrays_are_zero_whatever_their_size() {
        let zeroed = |len| zeroed::<Complex<f32>>("a test", Some(len), |_| String::new()).unwrap();
        assert!(zeroed(0).is_empty());
        for len in [1, 1000, (HUGE_FROM / 4) + 77] {
            let numbers = zeroed(len);
            assert_eq!((numbers.len(), numbers.capacity()), (len, len));
            assert!(numbers.iter().all(|z| *z == Complex::new(0.0, 0.0)));
        }
    }
}
