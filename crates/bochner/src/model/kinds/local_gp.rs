use super::{Answers, Load, ModelEntry, count, load};
use crate::error::{Result, check_dim};
use crate::feature::{Description, DynMap, FeatureMap, MAX_DEGREE, SketchKind, Spec};
use crate::linalg::Cholesky;
use crate::model::{Fitted, Local, LocalGpModel, Predict};
use crate::parameter::{Domain, description};
use crate::persist::{Header, Stored, Tensor, malformed, triangle};
use crate::preprocess::LengthScale;
use crate::variance::Weights;
use ndarray::{Array2, ArrayView2, Axis, s};

description! {
    /// Parameters of Gaussian-process regression around many centroids.
    pub struct LocalGpSpec {
        /// Budget of features around each centroid. Time grows with its square and with the number of centroids.
        n_components: usize = 256, Domain::COUNT, Size;
        /// Length scale of the kernel.
        length_scale: LengthScale = LengthScale::Same(1.0), Domain::LENGTH_SCALE, Kernel;
        /// Variance of the noise of the targets.
        noise: f64 = 0.01, Domain::POSITIVE, Fit;
        /// Variance of the function: the kernel's value at distance 0.
        signal_variance: f64 = 1.0, Domain::POSITIVE, Fit;
        /// Rows become centroids until none is this many length scales away from all of them; none, or infinity, means a
        /// single centroid, the mean.
        threshold: Option<f64> = Some(2.0), Domain::Optional(&Domain::POSITIVE), Fit;
        /// Most centroids.
        max_clusters: Option<usize> = None, Domain::Optional(&Domain::COUNT), Size;
        /// Whether the mean of the targets is subtracted before the fit and added to predictions.
        normalize_y: bool = false, Domain::Flag, Fit;
        /// Random directions.
        sketch: SketchKind = SketchKind::TensorSrht, Domain::Word(SketchKind::CHOICES), Draw;
        /// Complex or real directions.
        weights: Weights = Weights::Ctr, Domain::Word(Weights::CHOICES.split_at(2).0), Draw;
        /// Largest degree of the series.
        max_degree: u32 = 10, Domain::Whole(1, MAX_DEGREE as u64), Size;
    }
    besides {}
}

const KIND: &str = "local_gp";

pub(super) const ENTRY: ModelEntry = ModelEntry::new(KIND, "Gaussian process regression around many centres", "A Gaussian process with features around the nearest of many centres, for numbers that change over short distances.", "local-gp", LocalGpSpec::PARAMETERS, load::<LocalGpModel, LocalGpModel>)
.answering(Answers::DEVIATIONS)
.in_double();

impl Fitted for LocalGpModel {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn description(&self) -> Option<Description> {
        Some(Description::Map(self.spec().clone().into()))
    }

    regresses!(Predict::predict);

    fn variances(&self, rows: ArrayView2<'_, f64>) -> Result<(Array2<f64>, Vec<f64>)> {
        let (mean, variance) = self.predict_with_variance(rows)?;
        let all = variance.insert_axis(Axis(1)).broadcast(mean.dim()).map(|v| v.to_owned());
        Ok((all.expect("one variance per row"), vec![self.noise_variance(); self.output_dim()]))
    }

    fn sentences(&self) -> Vec<String> {
        let count = count(self.centroids().nrows());
        vec![format!("a process of its own around each of {count} centres; a row is predicted by the nearest")]
    }

    fn to_stored(&self) -> Result<Stored> {
        let norms: Vec<f64> = self.locals().iter().map(|local| local.factor.norm_one()).collect();
        let mut header = Header::of_map(KIND, self.map())?;
        header.insert("noise_variance", &self.noise_variance())?;
        header.insert("signal_variance", &self.signal_variance())?;
        header.insert("norms", &norms)?;
        let (count, dim) = (self.locals().len(), self.locals()[0].factor.order());
        let rows = |local: &Local| (0..dim).flat_map(|i| local.factor.factor().row(i).to_vec()).collect::<Vec<f64>>();
        let factors: Vec<f64> = self.locals().iter().flat_map(rows).collect();
        let coefficients: Vec<f64> =
            self.locals().iter().flat_map(|local| local.coefficients.iter().copied().collect::<Vec<_>>()).collect();
        let centroids = self.centroids();
        Ok(Stored::new(header)
            .with("centroids", Tensor::of(vec![count, self.input_dim()], centroids.iter().copied())?)
            .with("coefficients", Tensor::of(vec![count * dim, self.output_dim()], coefficients)?)
            .with("factors", Tensor::of(vec![count, dim * (dim + 1) / 2], factors)?))
    }
}

impl Load for LocalGpModel {
    fn load(stored: &Stored) -> Result<Self> {
        let Description::Map(Spec::Maclaurin(spec)) = stored.header.description()?.clone() else {
            return Err(malformed("a local Gaussian process has Maclaurin features"));
        };
        let (noise, signal) = (stored.header.part("noise_variance")?, stored.header.part("signal_variance")?);
        let norms: Vec<f64> = stored.header.part("norms")?;
        let map: DynMap<f64> = stored.draw()?;
        let dim = map.output_dim();
        let centroids: Array2<f64> = stored.matrix("centroids")?;
        let coefficients: Array2<f64> = stored.matrix("coefficients")?;
        let factors: Array2<f64> = stored.matrix("factors")?;
        let count = centroids.nrows();
        check_dim("number of factors", count, factors.nrows())?;
        check_dim("number of norms", count, norms.len())?;
        check_dim("number of values of a factor", dim * (dim + 1) / 2, factors.ncols())?;
        check_dim("number of coefficients", count.saturating_mul(dim), coefficients.nrows())?;
        let local = |(c, norm): (usize, f64)| {
            let factor = triangle(dim, &factors.row(c).to_vec())?;
            let coefficients = coefficients.slice(s![c * dim..(c + 1) * dim, ..]).to_owned();
            Ok(Local { factor: Cholesky::from_factor(factor, norm)?, coefficients })
        };
        let locals = norms.into_iter().enumerate().map(local).collect::<Result<Vec<_>>>()?;
        LocalGpModel::from_parts(map, spec, centroids, locals, noise, signal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feature::MaclaurinSpec;
    use crate::model::{Fit, LocalGp};

    #[test]
    fn a_local_process_survives_a_file() {
        let x = Array2::from_shape_fn((40, 2), |(i, j)| ((i * (j + 3)) as f64 * 0.37).sin() * 2.0);
        let y = x.map_axis(ndarray::Axis(1), |row| row[0] * row[1]).insert_axis(ndarray::Axis(1));
        let spec = MaclaurinSpec { n_components: 33, length_scale: 0.8.into(), ..Default::default() };
        let model = LocalGp::new(spec, 0.05).unwrap().fit(x.view(), y.view()).unwrap();
        let stored = Stored::from_bytes(&model.to_bytes().unwrap()).unwrap();
        let again = LocalGpModel::load(&stored).unwrap();
        let (expected, found) =
            (model.predict_with_variance(x.view()).unwrap(), again.predict_with_variance(x.view()).unwrap());
        assert_eq!(expected, found);
        let mut damaged = stored.clone();
        damaged.header.extra["noise_variance"] = serde_json::Value::Null;
        assert!(LocalGpModel::load(&damaged).is_err());
    }
}
