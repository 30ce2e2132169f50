use super::FeatureMap;
use crate::error::{Error, Result, check_dim};
use crate::scalar::Scalar;
use ndarray::{Array1, Array2, ArrayView2, ArrayView3, Axis};

/// Compact bilinear pooling: the sum of the sketches of all local descriptors of an image.
///
/// `descriptors` has shape (images, positions, channels). With a degree-2 sketch `φ`, row `i` of the result is
/// `Σₗ φ(fᵢₗ)`, and inner products of two rows estimate `Σ_{l, l'} ⟨fₗ, gₗ'⟩²`, the inner product of the full bilinear
/// poolings `Σₗ fₗ ⊗ fₗ` (thesis 1.3.1; Gao et al. 2016). One sketch serves all images.
///
/// # Errors
/// Channels that do not fit the map, no positions, NaN or infinities.
pub fn compact_bilinear_pooling<M: FeatureMap + ?Sized>(
    map: &M,
    descriptors: ArrayView3<'_, M::Real>,
) -> Result<Array2<M::Output>> {
    let (images, positions, channels) = descriptors.dim();
    check_dim("number of channels", map.input_dim(), channels)?;
    if positions == 0 {
        return Err(Error::parameter("descriptors", "at least one position per image", 0));
    }
    let mut pooled = map.room_for(images)?;
    // One image at a time: memory is positions × D, whatever the number of images.
    let mut features = map.room_for(positions)?;
    for (image, mut out) in descriptors.axis_iter(Axis(0)).zip(pooled.axis_iter_mut(Axis(0))) {
        map.transform_into(image, features.view_mut())?;
        for row in features.axis_iter(Axis(0)) {
            out.iter_mut().zip(row).for_each(|(o, f)| *o += *f);
        }
    }
    Ok(pooled)
}

/// Multimodal compact pooling: sketches `Σₗ fₗ ⊗ g` for descriptors `f` of one modality and a vector `g` of another.
///
/// `sketch` writes the sketch of `f ⊗ g` for pairs of rows, as `ProductSketch::sketch_factors` and
/// `TensorSketch::sketch_factors` do; the two row lengths may differ.
///
/// # Errors
/// Numbers of rows that differ, and what `sketch` says.
pub fn multimodal_pooling<T: Scalar>(
    left: ArrayView3<'_, T::Real>,
    right: ArrayView2<'_, T::Real>,
    mut sketch: impl FnMut(ArrayView2<'_, T::Real>, ArrayView2<'_, T::Real>) -> Result<Array2<T>>,
) -> Result<Array2<T>> {
    check_dim("number of rows of the second modality", left.dim().0, right.nrows())?;
    let positions = left.dim().1;
    let mut pooled = Vec::with_capacity(left.dim().0);
    for (image, other) in left.axis_iter(Axis(0)).zip(right.axis_iter(Axis(0))) {
        let repeated = other.broadcast((positions, right.ncols())).ok_or(Error::Dimension {
            what: "number of positions",
            expected: 1,
            found: positions,
        })?;
        let features = sketch(image, repeated)?;
        pooled.push(features.fold_axis(Axis(0), T::ZERO, |sum, f| *sum + *f));
    }
    let columns = pooled.first().map_or(0, Array1::len);
    let flat: Vec<T> = pooled.into_iter().flatten().collect();
    let rows = left.dim().0;
    Array2::from_shape_vec((rows, columns), flat).map_err(|_| Error::Dimension {
        what: "number of pooled rows",
        expected: rows,
        found: 0,
    })
}
