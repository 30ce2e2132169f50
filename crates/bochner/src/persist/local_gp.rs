use super::container::{Header, Stored, Tensor, malformed};
use crate::error::{Result, check_dim};
use crate::feature::{Describe, MaclaurinSpec, Spec};
use crate::linalg::{Cholesky, Lower};
use crate::model::{Local, LocalGpModel, Predict};
use ndarray::{Array2, s};

const KIND: &str = "local_gp";

impl LocalGpModel {
    /// What a file keeps of this model: centroids, coefficients and factors, and the description of its features.
    ///
    /// # Errors
    /// A description that cannot be written as JSON.
    pub fn to_stored(&self) -> Result<Stored> {
        let map = serde_json::to_value(Spec::from(self.spec().clone())).map_err(|e| malformed(e.to_string()))?;
        let norms: Vec<f64> = self.locals().iter().map(|local| local.factor.norm_one()).collect();
        let header = Header {
            kind: KIND.to_owned(),
            dtype: "f64".to_owned(),
            input_dim: self.input_dim(),
            map,
            preprocessing: serde_json::Value::Null,
            classes: None,
            extra: serde_json::json!({
                "noise_variance": self.noise_variance(),
                "signal_variance": self.signal_variance(),
                "norms": norms,
            }),
        };
        let (count, dim) = (self.locals().len(), self.locals()[0].factor.order());
        let rows =
            |local: &'_ Local| (0..dim).flat_map(|i| local.factor.factor().row(i).to_vec()).collect::<Vec<f64>>();
        let factors: Vec<f64> = self.locals().iter().flat_map(rows).collect();
        let coefficients: Vec<f64> =
            self.locals().iter().flat_map(|local| local.coefficients.iter().copied().collect::<Vec<_>>()).collect();
        let centroids = self.centroids();
        Ok(Stored::new(header)
            .with("centroids", Tensor::of(vec![count, self.input_dim()], centroids.iter().copied())?)
            .with("coefficients", Tensor::of(vec![count * dim, self.output_dim()], coefficients)?)
            .with("factors", Tensor::of(vec![count, dim * (dim + 1) / 2], factors)?))
    }

    /// The model of a file.
    ///
    /// # Errors
    /// A file of another kind, or arrays that do not fit its description.
    pub fn from_stored(stored: &Stored) -> Result<Self> {
        stored.expect_kind(KIND)?;
        let spec: Spec = serde_json::from_value(stored.header.map.clone()).map_err(|e| malformed(e.to_string()))?;
        let Spec::Maclaurin(spec) = spec else {
            return Err(malformed("a local Gaussian process has Maclaurin features"));
        };
        let number = |name: &str| {
            let value = stored.header.extra[name].as_f64();
            value.ok_or_else(|| malformed(format!("`{name}` is not a number")))
        };
        let spec: MaclaurinSpec = spec;
        let map = spec.build::<f64>(stored.header.input_dim)?;
        let dim = map.output_dim();
        let centroids: Array2<f64> = stored.matrix("centroids")?;
        let coefficients: Array2<f64> = stored.matrix("coefficients")?;
        let factors: Array2<f64> = stored.matrix("factors")?;
        let count = centroids.nrows();
        check_dim("number of factors", count, factors.nrows())?;
        check_dim("number of values of a factor", dim * (dim + 1) / 2, factors.ncols())?;
        check_dim("number of coefficients", count.saturating_mul(dim), coefficients.nrows())?;
        let locals = (0..count)
            .map(|c| {
                let mut factor = Lower::zeros(dim)?;
                let mut values = factors.row(c).into_iter().copied();
                for i in 0..dim {
                    factor.row_mut(i).fill_with(|| values.next().unwrap_or(f64::NAN));
                }
                let norm = stored.header.extra["norms"][c].as_f64().unwrap_or(f64::NAN);
                let coefficients = coefficients.slice(s![c * dim..(c + 1) * dim, ..]).to_owned();
                Ok(Local { factor: Cholesky::from_factor(factor, norm)?, coefficients })
            })
            .collect::<Result<Vec<_>>>()?;
        LocalGpModel::from_parts(map, spec, centroids, locals, number("noise_variance")?, number("signal_variance")?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Fit, LocalGp};

    #[test]
    fn a_local_process_survives_a_file() {
        let x = Array2::from_shape_fn((40, 2), |(i, j)| ((i * (j + 3)) as f64 * 0.37).sin() * 2.0);
        let y = x.map_axis(ndarray::Axis(1), |row| row[0] * row[1]).insert_axis(ndarray::Axis(1));
        let spec = MaclaurinSpec { n_components: 33, length_scale: 0.8.into(), ..Default::default() };
        let model = LocalGp::new(spec, 0.05).unwrap().fit(x.view(), y.view()).unwrap();
        let stored = Stored::from_bytes(&model.to_stored().unwrap().to_bytes().unwrap()).unwrap();
        let again = LocalGpModel::from_stored(&stored).unwrap();
        let (expected, found) =
            (model.predict_with_variance(x.view()).unwrap(), again.predict_with_variance(x.view()).unwrap());
        assert_eq!(expected, found);
        let mut damaged = stored.clone();
        damaged.header.extra["noise_variance"] = serde_json::Value::Null;
        assert!(LocalGpModel::from_stored(&damaged).is_err());
        damaged.header.kind = "ridge".into();
        assert!(LocalGpModel::from_stored(&damaged).is_err());
    }
}
