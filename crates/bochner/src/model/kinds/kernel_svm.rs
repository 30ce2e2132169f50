use super::{Load, ModelEntry, count, load};
use crate::error::{Result, check_dim};
use crate::kernel::{AnyKernel, Kernel};
use crate::model::{Fitted, KernelSvm, KernelSvmModel};
use crate::parameter::{Domain, description};
use crate::persist::{Header, Stored, Tensor};
use ndarray::{Array2, ArrayView2};

description! {
    /// Parameters of a support vector machine with an exact kernel.
    #[allow(non_snake_case)] // as the ecosystem writes it
    pub struct KernelSvmSpec {
        /// Price of a violated margin.
        C: f64 = 1.0, Domain::POSITIVE, Fit;
        /// Violation of the optimality conditions at which a pair is solved.
        tol: f64 = 1e-3, Domain::POSITIVE, Fit;
        /// Most steps for a pair of classes; none means ten million.
        max_iter: Option<usize> = None, Domain::Optional(&Domain::COUNT), Size;
        /// Bytes of kernel values kept for a pair of classes; none means 1 GiB.
        memory_budget: Option<u64> = None, Domain::Optional(&Domain::COUNT), Size;
    }
    besides {}
}

impl KernelSvmSpec {
    /// A machine with this kernel.
    ///
    /// # Errors
    /// Parameters out of range, named.
    pub fn on<K: Kernel + Clone>(&self, kernel: K) -> Result<KernelSvm<K>> {
        self.check_parameters()?;
        let svm = KernelSvm::new(kernel, self.C)?.with_tolerance(self.tol)?;
        match self.max_iter {
            Some(steps) => svm.with_max_steps(steps),
            None => Ok(svm),
        }
    }
}

pub(crate) const KIND: &str = "kernel_svm";

pub(super) const ENTRY: ModelEntry = ModelEntry::new(
    KIND,
    "exact kernel support vector machine",
    "A support vector machine with the exact kernel, one class against another, for some thousands of rows.",
    "kernel-svm",
    KernelSvmSpec::PARAMETERS,
    load::<KernelSvmModel<AnyKernel>, KernelSvmModel<AnyKernel>>,
)
.classification()
.in_double();

impl<K: Kernel + 'static> Fitted for KernelSvmModel<K> {
    on_kernel!(KIND);

    fn dims(&self) -> (usize, usize) {
        (self.support_vectors().ncols(), self.classes())
    }

    fn class_count(&self) -> Option<usize> {
        Some(self.classes())
    }

    /// Votes of the pairs of classes.
    fn values(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        self.votes(rows)
    }

    fn sentences(&self) -> Vec<String> {
        let (pairs, converged) = (self.reports().count(), self.reports().filter(|r| r.converged).count());
        let vectors = count(self.support().len());
        vec![format!("{vectors} support vectors; {converged} of {pairs} pairs of classes reached their tolerance")]
    }

    fn to_stored(&self) -> Result<Stored> {
        let (rows, coefficients, parts) = self.parts();
        let mut header = Header::of_kernel(KIND, rows.ncols(), self.kernel().description())?;
        header.insert("machine", parts)?;
        let tensor = |m: &Array2<f64>| Tensor::of(vec![m.nrows(), m.ncols()], m.iter().copied());
        Ok(Stored::new(header).with("coefficients", tensor(coefficients)?).with("rows", tensor(rows)?))
    }
}

impl Load for KernelSvmModel<AnyKernel> {
    fn load(stored: &Stored) -> Result<Self> {
        let kernel = stored.header.description()?.kernel()?.clone();
        let rows = stored.matrix("rows")?;
        check_dim("length of a support vector", stored.header.input_dim, rows.ncols())?;
        KernelSvmModel::from_parts(kernel, rows, stored.matrix("coefficients")?, stored.header.part("machine")?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Gaussian;
    use crate::model::{Fit, KernelSvm};

    #[test]
    fn a_kernel_machine_survives_a_file() {
        let rows = Array2::from_shape_fn((60, 2), |(i, j)| ((i * (j + 2)) as f64 * 0.61).sin());
        let labels = Array2::from_shape_fn((60, 1), |(i, _)| f64::from(u8::from(rows[[i, 0]] * rows[[i, 1]] > 0.0)));
        let kernel = AnyKernel::from(Gaussian::new(0.5).unwrap());
        let model = KernelSvm::new(kernel, 10.0).unwrap().fit(rows.view(), labels.view()).unwrap();
        let stored = Stored::from_bytes(&model.to_bytes().unwrap()).unwrap();
        let again = KernelSvmModel::load(&stored).unwrap();
        assert_eq!(model.decide(rows.view()).unwrap(), again.decide(rows.view()).unwrap());
        assert_eq!(again.classes(), 2);
        let mut damaged = stored.clone();
        damaged.header.extra["machine"]["pairs"][0]["second"] = 7.into();
        assert!(KernelSvmModel::load(&damaged).is_err());
    }
}
