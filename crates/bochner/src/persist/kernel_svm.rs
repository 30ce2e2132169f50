use super::container::{Header, Stored, Tensor, malformed};
use crate::error::{Result, check_dim};
use crate::kernel::Kernel;
use crate::model::{KernelSvmModel, KernelSvmParts};
use ndarray::Array2;
use serde_json::Value;

const KIND: &str = "kernel_svm";

impl<K: Kernel> KernelSvmModel<K> {
    /// What a file keeps of this machine: support vectors and coefficients, and the description of its kernel in place of
    /// that of a map; `classes` are the names of the classes, in the order of their numbers.
    ///
    /// # Errors
    /// Fewer names than classes.
    pub fn to_stored(&self, kernel: Value, classes: Option<Vec<Value>>) -> Result<Stored> {
        let (rows, coefficients, parts) = self.parts();
        if let Some(names) = &classes {
            // Classes without rows at the end are not known to the machine.
            check_dim("number of names of classes", parts.classes.max(names.len()), names.len())?;
        }
        let machine = serde_json::to_value(parts).map_err(|e| malformed(e.to_string()))?;
        let header = Header {
            kind: KIND.to_owned(),
            dtype: "f64".to_owned(),
            input_dim: rows.ncols(),
            map: kernel,
            preprocessing: Value::Null,
            classes,
            extra: serde_json::json!({ "machine": machine }),
        };
        let tensor = |m: &Array2<f64>| Tensor::of(vec![m.nrows(), m.ncols()], m.iter().copied());
        Ok(Stored::new(header).with("coefficients", tensor(coefficients)?).with("rows", tensor(rows)?))
    }

    /// The machine of a file, with the kernel made from the file's description.
    ///
    /// # Errors
    /// A file of another kind, or arrays that do not fit together.
    pub fn from_stored(stored: &Stored, kernel: K) -> Result<Self> {
        stored.expect_kind(KIND)?;
        let parts: KernelSvmParts = serde_json::from_value(stored.header.extra["machine"].clone())
            .map_err(|e| malformed(format!("the machine cannot be read: {e}")))?;
        if let Some(names) = &stored.header.classes {
            check_dim("number of names of classes", parts.classes.max(names.len()), names.len())?;
        }
        let rows = stored.matrix("rows")?;
        check_dim("length of a support vector", stored.header.input_dim, rows.ncols())?;
        KernelSvmModel::from_parts(kernel, rows, stored.matrix("coefficients")?, parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{AnyKernel, Gaussian};
    use crate::model::{Fit, KernelSvm};

    #[test]
    fn a_kernel_machine_survives_a_file() {
        let rows = Array2::from_shape_fn((60, 2), |(i, j)| ((i * (j + 2)) as f64 * 0.61).sin());
        let labels = Array2::from_shape_fn((60, 1), |(i, _)| f64::from(u8::from(rows[[i, 0]] * rows[[i, 1]] > 0.0)));
        let kernel = AnyKernel::from(Gaussian::new(0.5).unwrap());
        let model = KernelSvm::new(kernel.clone(), 10.0).unwrap().fit(rows.view(), labels.view()).unwrap();
        let described = serde_json::to_value(&kernel).unwrap();
        let stored = model.to_stored(described, None).unwrap();
        let stored = Stored::from_bytes(&stored.to_bytes().unwrap()).unwrap();
        let again = KernelSvmModel::from_stored(&stored, kernel.clone()).unwrap();
        assert_eq!(model.decide(rows.view()).unwrap(), again.decide(rows.view()).unwrap());
        assert_eq!(again.classes(), 2);
        let mut damaged = stored.clone();
        damaged.header.extra["machine"]["pairs"][0]["second"] = 7.into();
        assert!(KernelSvmModel::from_stored(&damaged, kernel.clone()).is_err());
        damaged.header.kind = "svm".into();
        assert!(KernelSvmModel::from_stored(&damaged, kernel).is_err());
    }
}
