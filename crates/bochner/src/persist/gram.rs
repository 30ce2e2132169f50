use super::container::{Array, Header, Stored, malformed};
use crate::accumulate::{Gram, Origin, Products, Totals};
use crate::error::Result;
use crate::linalg::{Lower, Tile};
use crate::scalar::{Real, Scalar};
use ndarray::Array2;
use serde::Serialize;
use std::path::Path;

const KIND: &str = "gram";

/// Complex numbers are stored as pairs along a last axis of length 2.
pub(crate) fn shape<T: Scalar>(dims: &[usize]) -> Vec<usize> {
    let mut shape = dims.to_vec();
    if T::IS_COMPLEX {
        shape.push(2);
    }
    shape
}

pub(crate) fn spread<T: Scalar<Real = f64>>(values: &[T], out: &mut Vec<f64>) {
    out.clear();
    for v in values {
        out.push(v.re());
        if T::IS_COMPLEX {
            out.push(v.im());
        }
    }
}

pub(super) fn array<'a, T: Scalar<Real = f64>>(name: &str, dims: &[usize], values: Vec<T>) -> Array<'a> {
    Array::double(name, shape::<T>(dims), move |emit| {
        let mut flat = Vec::new();
        spread(&values, &mut flat);
        emit(&flat)
    })
}

pub(crate) fn collect<T: Scalar<Real = f64>>(flat: &[f64]) -> Vec<T> {
    let step = if T::IS_COMPLEX { 2 } else { 1 };
    flat.chunks_exact(step).map(|c| T::from_parts(c[0], c[step - 1])).collect()
}

/// Numbers in the lower triangle of a matrix.
pub(crate) fn triangle_len(dim: usize) -> Result<usize> {
    let square = dim.checked_add(1).and_then(|next| dim.checked_mul(next));
    Ok(square.ok_or_else(|| malformed(format!("no matrix of order {dim} fits into memory")))? / 2)
}

/// Lower triangles one after the other, row by row.
pub(super) fn triangles<'a, W: Scalar<Real = f64>>(name: &str, matrices: Vec<&'a Lower<W>>) -> Array<'a> {
    let len = matrices.iter().map(|m| m.order() * (m.order() + 1) / 2).sum();
    Array::double(name, shape::<W>(&[len]), move |emit| {
        let mut flat = Vec::new();
        matrices.iter().try_for_each(|matrix| {
            (0..matrix.order()).try_for_each(|i| {
                spread(matrix.row(i), &mut flat);
                emit(&flat)
            })
        })
    })
}

/// The matrix whose lower triangle these numbers are.
pub(crate) fn triangle<W: Scalar<Real = f64>>(order: usize, entries: &[W]) -> Result<Lower<W>> {
    crate::error::check_dim("number of values of a triangle", triangle_len(order)?, entries.len())?;
    let mut matrix = Lower::zeros(order)?;
    let mut rest = entries;
    for i in 0..order {
        let (row, after) = rest.split_at(i + 1);
        matrix.row_mut(i).copy_from_slice(row);
        rest = after;
    }
    Ok(matrix)
}

/// The header of sums over numbers of type `T`.
pub(super) fn header<T: Scalar>(kind: &str, input_dim: usize) -> Result<Header> {
    let mut header = Header::new(kind, T::Real::NAME, input_dim);
    header.insert("complex", &T::IS_COMPLEX)?;
    Ok(header)
}

/// Refuses sums over other numbers than `T`.
pub(super) fn check_numbers<T: Scalar>(stored: &Stored) -> Result<()> {
    let (dtype, complex) = (stored.header.dtype.as_str(), stored.header.extra["complex"].as_bool());
    if dtype == T::Real::NAME && complex == Some(T::IS_COMPLEX) {
        return Ok(());
    }
    Err(malformed(format!("holds sums over {dtype} numbers, complex: {complex:?}")))
}

/// Values of an array, which must be as many as expected where that is known.
pub(super) fn wide<W: Scalar<Real = f64>>(stored: &Stored, name: &str, expected: Option<usize>) -> Result<Vec<W>> {
    let values: Vec<W> = match stored.tensor(name)?.values() {
        super::Values::F64(flat) => collect(flat),
        _ => return Err(malformed(format!("array `{name}` is not of type f64"))),
    };
    match expected {
        Some(expected) if expected != values.len() => {
            Err(malformed(format!("array `{name}` holds {} numbers, not {expected}", values.len())))
        }
        _ => Ok(values),
    }
}

/// Files of sums: how they are written and read is said by `document` and `from_stored`.
macro_rules! sums_in_files {
    ($sums:ident) => {
        impl<T: Scalar> $sums<T> {
            /// Saves the sums and the rows that wait, so that a stream can go on later with the same bits, and a note beside them:
            /// what a checkpoint has to remember is replaced with them.
            ///
            /// # Errors
            /// What the operating system says.
            pub fn save_with<N: Serialize>(&self, path: impl AsRef<std::path::Path>, note: &N) -> Result<()> {
                let (header, arrays) = self.document(note)?;
                $crate::persist::container::save(path.as_ref(), &header, &arrays)
            }

            /// The bytes that [`save_with`](Self::save_with) would write: what goes from one process to another.
            ///
            /// # Errors
            /// None known.
            pub fn to_bytes(&self) -> Result<Vec<u8>> {
                let (header, arrays) = self.document(&())?;
                $crate::persist::container::bytes(&header, &arrays)
            }

            /// Loads what [`save_with`](Self::save_with) wrote: the accumulator and its note.
            ///
            /// # Errors
            /// [`Error::Format`](crate::Error::Format) for damaged files and for accumulators of another number type.
            pub fn load_with<N: serde::de::DeserializeOwned>(path: impl AsRef<std::path::Path>) -> Result<(Self, N)> {
                let stored = Stored::load(path)?;
                Ok((Self::from_stored(&stored)?, stored.note()?))
            }

            /// The accumulator whose [`to_bytes`](Self::to_bytes) these are.
            ///
            /// # Errors
            /// As [`load_with`](Self::load_with).
            pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
                Self::from_stored(&Stored::from_bytes(bytes)?)
            }
        }
    };
}
pub(super) use sums_in_files;

sums_in_files!(Gram);

impl<T: Scalar> Gram<T> {
    /// Saves the sums and the rows collected since, so that a stream can go on later with the same bits.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.save_with(path, &())
    }

    fn document(&self, note: &impl Serialize) -> Result<(Header, Vec<Array<'_>>)> {
        let (Products { gram, cross, feature_sums }, totals, rows, origin) = self.parts();
        let (dim, outputs) = (self.dim(), self.outputs());
        let pending = rows.features.rows();
        let mut header = header::<T>(KIND, dim)?;
        header.insert("outputs", &outputs)?;
        header.insert("count", &totals.count)?;
        header.insert("note", note)?;
        if totals.forgotten > 0.0 {
            header.insert("forgotten", &totals.forgotten)?;
        }
        let wide =
            |rows: Tile<'_, T>| (0..rows.rows()).flat_map(|i| rows.row(i)).map(|v| v.widen()).collect::<Vec<T::Wide>>();
        let mut arrays = vec![
            array("collected", &[pending, dim], wide(rows.features)),
            array("collected_sides", &[pending, outputs + 1], wide(rows.sides)),
            array("cross", &[dim, outputs], cross.iter().copied().collect()),
            array("feature_sums", &[dim], feature_sums.to_vec()),
            triangles("gram", vec![gram]),
            array("target_origin", &[outputs], totals.origin.clone()),
            array("target_squares", &[outputs], totals.target_squares.clone()),
            array("target_sums", &[outputs], totals.target_sums.clone()),
            array("weight_sums", &[2], vec![totals.weight_sum, totals.log_weight_sum]),
        ];
        // Without one, the rows are the first of a stream and wait as they came.
        if let Some((features, targets)) = origin.map(Origin::widened) {
            arrays.push(array("origin_of_features", &[dim], features));
            arrays.push(array("origin_of_targets", &[outputs], targets));
        }
        Ok((header, arrays))
    }

    /// Loads what [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// [`Error::Format`](crate::Error::Format) for damaged files and for accumulators of another number type.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_stored(&Stored::load(path)?)
    }

    pub(crate) fn from_stored(stored: &Stored) -> Result<Self> {
        stored.expect_kind(KIND)?;
        check_numbers::<T>(stored)?;
        let (dim, outputs) = (stored.header.input_dim, stored.header.part::<usize>("outputs")?);
        let gram = triangle(dim, &wide::<T::Wide>(stored, "gram", Some(triangle_len(dim)?))?)?;
        let cross = Array2::from_shape_vec((dim, outputs), wide(stored, "cross", dim.checked_mul(outputs))?)
            .map_err(|e| malformed(e.to_string()))?;
        let weight_sums: Vec<f64> = wide(stored, "weight_sums", Some(2))?;
        let sums = Products { gram, cross, feature_sums: wide(stored, "feature_sums", Some(dim))? };
        // Files from before there were origins hold sums about 0.
        let is_old = stored.tensor("target_origin").is_err();
        let totals = Totals {
            origin: if is_old { vec![0.0; outputs] } else { wide(stored, "target_origin", Some(outputs))? },
            target_sums: wide(stored, "target_sums", Some(outputs))?,
            target_squares: wide(stored, "target_squares", Some(outputs))?,
            weight_sum: weight_sums[0],
            log_weight_sum: weight_sums[1],
            count: stored.header.part("count")?,
            forgotten: stored.header.part::<Option<f64>>("forgotten")?.unwrap_or(0.0),
        };
        let narrow = |values: Vec<T::Wide>| values.into_iter().map(T::narrow).collect::<Vec<T>>();
        let origin = match stored.tensor("origin_of_features") {
            Ok(_) => Some(Origin {
                features: narrow(wide(stored, "origin_of_features", Some(dim))?),
                targets: wide::<f64>(stored, "origin_of_targets", Some(outputs))?
                    .into_iter()
                    .map(T::Real::from_f64)
                    .collect(),
            }),
            Err(_) => is_old.then(|| Origin::zeros(dim, outputs)),
        };
        let rows = (narrow(wide(stored, "collected", None)?), narrow(wide(stored, "collected_sides", None)?));
        Gram::from_parts(sums, totals, (&rows.0, &rows.1), origin)
    }
}
