//! Orthonormal rows by Householder QR, always in double precision and on the calling thread: the same bits on any number
//! of threads.

use bochner_backend::orthonormal_columns;

/// Replaces `count` rows of length `dim` (`count ≤ dim`, row-major) by orthonormal rows with the same spans of first rows.
///
/// The triangular factor has a positive diagonal, so rows of independent normals become Haar distributed. Returns the
/// smallest modulus on that diagonal relative to the largest: 0 for dependent rows.
pub fn orthonormal_rows(rows: &mut [f64], count: usize, dim: usize) -> f64 {
    assert!(count <= dim && rows.len() == count * dim);
    if count == 0 {
        return 1.0;
    }
    // Rows of a row-major matrix are columns of its column-major transpose.
    let diagonal = orthonormal_columns(rows, count, dim);
    let largest = diagonal.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    let smallest = diagonal.iter().fold(f64::INFINITY, |m: f64, v| m.min(v.abs()));
    if largest > 0.0 { smallest / largest } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Role, Seed, Stream};

    #[test]
    fn rows_become_orthonormal_and_keep_their_order() {
        for (count, dim) in [(1, 1), (1, 7), (5, 5), (40, 90)] {
            let mut rows = vec![0.0; count * dim];
            Stream::new(Seed::new(1), Role::Noise, 0).normals_from(0, &mut rows);
            let before = rows.clone();
            assert!(orthonormal_rows(&mut rows, count, dim) > 0.0);
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
            for i in 0..count {
                for j in 0..count {
                    let expected = f64::from(u8::from(i == j));
                    let found = dot(&rows[i * dim..][..dim], &rows[j * dim..][..dim]);
                    assert!((found - expected).abs() < 1e-13, "{i} {j} {found}");
                    // Row j lies in the span of the first j orthonormal rows, with a positive last coefficient.
                    let coefficient = dot(&rows[i * dim..][..dim], &before[j * dim..][..dim]);
                    match i.cmp(&j) {
                        std::cmp::Ordering::Greater => assert!(coefficient.abs() < 1e-12),
                        std::cmp::Ordering::Equal => assert!(coefficient > 0.0),
                        std::cmp::Ordering::Less => {}
                    }
                }
            }
        }
    }

    #[test]
    fn dependent_rows_are_told_apart() {
        let mut rows = [1.0, 2.0, 3.0, 2.0, 4.0, 6.0];
        assert!(orthonormal_rows(&mut rows, 2, 3) < 1e-15);
    }
}
