//! The embedded data set: 1,797 handwritten digits of 8 × 8 pixels (source and licence in `data/README.md`).

use bochner_table::failure::{Failure, Outcome};
use flate2::read::GzDecoder;
use ndarray::{Array2, Axis};
use std::io::Read;

const IMAGES: &[u8] = include_bytes!("../data/digits-images-idx3-ubyte.gz");
const LABELS: &[u8] = include_bytes!("../data/digits-labels-idx1-ubyte.gz");
const ROWS: usize = 1797;
const PIXELS: usize = 64;

/// Images of pixels from 0 to 16 and labels from 0 to 9.
#[derive(Debug)]
pub(crate) struct Digits {
    pub(crate) images: Array2<f64>,
    pub(crate) labels: Vec<usize>,
}

impl Digits {
    pub(crate) fn load() -> Outcome<Self> {
        let images = unpack(IMAGES, 16 + ROWS * PIXELS)?;
        let labels = unpack(LABELS, 8 + ROWS)?;
        let pixels = images[16..].iter().map(|&p| f64::from(p)).collect();
        Ok(Digits {
            images: Array2::from_shape_vec((ROWS, PIXELS), pixels).map_err(|e| Failure::Failed(e.to_string()))?,
            labels: labels[8..].iter().map(|&l| usize::from(l)).collect(),
        })
    }

    /// Some of them, in this order.
    pub(crate) fn select(&self, numbers: &[usize]) -> Self {
        let labels = numbers.iter().map(|&i| self.labels[i]).collect();
        Digits { images: self.images.select(Axis(0), numbers), labels }
    }
}

fn unpack(bytes: &[u8], len: usize) -> Outcome<Vec<u8>> {
    let mut raw = Vec::with_capacity(len);
    GzDecoder::new(bytes).read_to_end(&mut raw)?;
    if raw.len() == len { Ok(raw) } else { Err(Failure::Failed("the embedded digits are damaged".into())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

    fn sha256(bytes: &[u8]) -> String {
        Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
    }

    #[test]
    fn the_embedded_digits_are_the_published_ones() {
        let images = unpack(IMAGES, 16 + ROWS * PIXELS).unwrap();
        let labels = unpack(LABELS, 8 + ROWS).unwrap();
        assert_eq!(sha256(&images), "359cd13f0f514122884198b78a131df597421cbf5e93a76678fa96fc548f0d96");
        assert_eq!(sha256(&labels), "ce71631c1f31ce56fa54f31d1d498fafacff59b001e6c30c4a5e29508aa277ad");
    }

    #[test]
    fn every_class_and_every_grey_value_occurs() {
        let digits = Digits::load().unwrap();
        // Counts per class as the data set's documentation states them.
        let mut per_class = [0; 10];
        digits.labels.iter().for_each(|&l| per_class[l] += 1);
        assert_eq!(per_class, [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
        for grey in 0..=16 {
            assert!(digits.images.iter().any(|&p| p == f64::from(grey)), "no pixel is {grey}");
        }
    }
}
