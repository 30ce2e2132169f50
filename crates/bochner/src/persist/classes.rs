use super::container::{Array, Header, Stored, malformed};
use super::gram::{array, check_numbers, header, sums_in_files, triangle, triangle_len, triangles, wide};
use crate::accumulate::{Class, ClassGram, Products, Totals};
use crate::error::{Result, check_dim};
use crate::scalar::{Real, Scalar};
use ndarray::Array2;
use serde::Serialize;

const KIND: &str = "class_gram";

sums_in_files!(ClassGram);

impl<T: Scalar> ClassGram<T> {
    fn document(&self, note: &impl Serialize) -> Result<(Header, Vec<Array<'_>>)> {
        let (input_dim, dim, classes) = self.parts();
        let counts: Vec<u64> = classes.iter().map(|class| class.totals.count).collect();
        let waiting: Vec<usize> = classes.iter().map(|class| class.numbers.len()).collect();
        let mut header = header::<T>(KIND, input_dim)?;
        header.insert("features", &dim)?;
        header.insert("counts", &counts)?;
        header.insert("waiting", &waiting)?;
        header.insert("note", note)?;
        let forgotten: Vec<f64> = classes.iter().map(|class| class.totals.forgotten).collect();
        if forgotten.iter().any(|trace| *trace > 0.0) {
            header.insert("forgotten", &forgotten)?;
        }
        let all: usize = waiting.iter().sum();
        let doubles = |values: &[T::Real]| values.iter().map(|v| Real::to_f64(*v)).collect::<Vec<f64>>();
        let sums: Vec<T::Wide> = classes.iter().flat_map(|class| class.sums.feature_sums.clone()).collect();
        let weights = |class: &Class<T>| [class.totals.weight_sum, class.totals.log_weight_sum];
        let arrays = vec![
            array("feature_sums", &[classes.len(), dim], sums),
            triangles("gram", classes.iter().map(|class| &class.sums.gram).collect()),
            array::<f64>("weight_sums", &[classes.len(), 2], classes.iter().flat_map(weights).collect()),
            // Below 2⁵³ these are exact.
            array::<f64>(
                "waiting_numbers",
                &[all],
                classes.iter().flat_map(|class| class.numbers.iter().map(|&n| n as f64)).collect(),
            ),
            array("waiting_rows", &[all, input_dim], classes.iter().flat_map(|class| doubles(&class.rows)).collect()),
            array("waiting_weights", &[all], classes.iter().flat_map(|class| doubles(&class.weights)).collect()),
        ];
        Ok((header, arrays))
    }

    pub(crate) fn from_stored(stored: &Stored) -> Result<Self> {
        stored.expect_kind(KIND)?;
        check_numbers::<T>(stored)?;
        let (input_dim, header) = (stored.header.input_dim, &stored.header);
        let dim: usize = header.part("features")?;
        let (counts, waiting): (Vec<u64>, Vec<u64>) = (header.part("counts")?, header.part("waiting")?);
        check_dim("number of classes", counts.len(), waiting.len())?;
        let forgotten = header.part::<Option<Vec<f64>>>("forgotten")?.unwrap_or_else(|| vec![0.0; counts.len()]);
        check_dim("number of classes", counts.len(), forgotten.len())?;
        let known =
            |count: Option<usize>| count.map(Some).ok_or_else(|| malformed("its sums would not fit into any memory"));
        let (classes, triangle_len) = (counts.len(), triangle_len(dim)?);
        let all = waiting.iter().try_fold(0u64, |sum, n| sum.checked_add(*n)).and_then(|n| usize::try_from(n).ok());
        let grams: Vec<T::Wide> = wide(stored, "gram", known(classes.checked_mul(triangle_len))?)?;
        let sums: Vec<T::Wide> = wide(stored, "feature_sums", known(classes.checked_mul(dim))?)?;
        let weight_sums: Vec<f64> = wide(stored, "weight_sums", known(classes.checked_mul(2))?)?;
        let rows: Vec<f64> = wide(stored, "waiting_rows", known(all.and_then(|all| all.checked_mul(input_dim)))?)?;
        let weights: Vec<f64> = wide(stored, "waiting_weights", known(all)?)?;
        let places: Vec<f64> = wide(stored, "waiting_numbers", known(all)?)?;
        let narrow = |values: &[f64]| values.iter().map(|v| T::Real::from_f64(*v)).collect::<Vec<_>>();
        let mut first = 0;
        let read = (0..classes).map(|c| {
            let range = first..first + waiting[c] as usize;
            first = range.end;
            let totals = Totals {
                weight_sum: weight_sums[2 * c],
                log_weight_sum: weight_sums[2 * c + 1],
                count: counts[c],
                forgotten: forgotten[c],
                ..Totals::zeros(0)
            };
            let sums = Products {
                gram: triangle(dim, &grams[c * triangle_len..][..triangle_len])?,
                cross: Array2::from_elem((dim, 0), T::Wide::ZERO),
                feature_sums: sums[c * dim..][..dim].to_vec(),
            };
            Ok(Class {
                sums,
                totals,
                rows: narrow(&rows[range.start * input_dim..range.end * input_dim]),
                weights: narrow(&weights[range.clone()]),
                numbers: places[range].iter().map(|n| *n as u64).collect(),
            })
        });
        let read = read.collect::<Result<Vec<_>>>()?;
        ClassGram::from_parts(input_dim, dim, read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feature::{Describe, FourierSpec};
    use crate::rows::RowBlock;
    use ndarray::s;

    #[test]
    fn sums_of_classes_go_on_after_a_file_with_the_same_bits() {
        let rows = Array2::from_shape_fn((2600, 2), |(i, j)| ((i * (j + 3)) as f32 * 0.37).sin());
        let labels = Array2::from_shape_fn((2600, 1), |(i, _)| if i % 11 == 0 { 2.0f32 } else { (i % 2) as f32 });
        let map = FourierSpec { n_components: 12, seed: 5, ..FourierSpec::default() }.build::<f32>(2).unwrap();
        let push = |to: &mut ClassGram<f32>, range: std::ops::Range<usize>| {
            let (rows, targets) = (rows.slice(s![range.clone(), ..]), labels.slice(s![range, ..]));
            to.push_rows(&map, RowBlock { rows, targets, weights: None }).unwrap();
        };
        let mut whole = ClassGram::new(2, 12, 4).unwrap();
        push(&mut whole, 0..2600);
        let mut part = ClassGram::new(2, 12, 4).unwrap();
        push(&mut part, 0..2345);
        let path = std::env::temp_dir().join(format!("bochner-class-gram-{}", std::process::id()));
        part.save_with(&path, &("why", 1)).unwrap();
        let (mut again, note) = ClassGram::<f32>::load_with::<(String, u8)>(&path).unwrap();
        assert_eq!((again.count(), note), (2345, ("why".to_owned(), 1)));
        assert!(ClassGram::<f64>::load_with::<(String, u8)>(&path).is_err());
        push(&mut again, 2345..2600);
        std::fs::remove_file(path).unwrap();
        for (a, b) in whole.finish(&map).unwrap().iter().zip(again.finish(&map).unwrap()) {
            assert_eq!((&a.feature_sums, &a.totals), (&b.feature_sums, &b.totals));
            (0..12).for_each(|i| assert_eq!(a.gram.row(i), b.gram.row(i)));
        }
    }
}
