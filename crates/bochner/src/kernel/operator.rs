use super::{AnyKernel, Gaussian, Kernel, Laplacian, Matern, OutputMatrix, distance_sq, kernel_matrix};
use crate::error::{Error, Result, check_dim, check_non_negative, check_positive};
use crate::memory::{bytes, in_blocks, need};
use crate::parallel::Parallel;
use crate::parameter::{Domain, Entry, Parameter, Sort, Value, Word, parameters};
use crate::rows::check_finite;
use crate::scalar::Real;
use crate::words;
use ndarray::{Array2, Array4, ArrayView2, Axis};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Kernels whose values are matrices: what makes several outputs one function.
///
/// With `k₀(δ) = exp(-|δ|²/2ℓ²)`, `δ = x - z` and `s = 1/ℓ²`:
///
/// | kernel | `K(x, z)` | functions |
/// |---|---|---|
/// | decomposable | `k(x - z) A`, any shift-invariant `k`, `A` positive semi-definite | outputs related by `A` |
/// | curl-free | `-∇∇ᵀk₀ = k₀(δ)(sI - s²δδᵀ)` | gradients of potentials |
/// | divergence-free | `(∇∇ᵀ - Δ)k₀ = k₀(δ)(((d-1)s - s²\|δ\|²)I + s²δδᵀ)` | incompressible flows |
/// | Helmholtz | `γ` times the curl-free and `1-γ` times the divergence-free one | both at once |
///
/// The last three map `d` inputs to `d` outputs and are not normalised: `K(x, x)` is `sI` and `(d-1)sI`; for `d = 1` the
/// divergence-free kernel is 0.
///
/// ```
/// use bochner::kernel::OperatorKernel;
/// let kernel = OperatorKernel::curl_free(2.0)?;
/// let k = kernel.evaluate(&[1.0, 0.0], &[1.0, 0.0])?;
/// assert_eq!(k, ndarray::array![[0.25, 0.0], [0.0, 0.25]]);
/// # Ok::<(), bochner::Error>(())
/// ```
///
/// # References
/// Brault, Heinonen and d'Alché-Buc 2016, examples 1 to 3 (the divergence-free spectrum is misprinted there).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct OperatorKernel {
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Decomposable { base: AnyKernel, outputs: OutputMatrix },
    Field(Field),
}

/// A curl-free and a divergence-free kernel of one length scale, with their weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Field {
    pub(crate) length_scale: f64,
    pub(crate) curl_free: f64,
    pub(crate) div_free: f64,
}

/// Parameters of the kernels of fields.
const FIELD: &[Parameter] = parameters! {
    /// Distance over which the Gaussian kernel falls off.
    length_scale: f64 = 1.0, Domain::POSITIVE, Kernel;
};

/// Scalar kernels of decomposable ones.
const BASES: &[Word] = &[
    Word::new(Gaussian::ENTRY.name, Gaussian::ENTRY.about),
    Word::new(Laplacian::ENTRY.name, Laplacian::ENTRY.about),
    Word::new(Matern::ENTRY.name, Matern::ENTRY.about),
];

/// What a file says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kernel", rename_all = "snake_case", deny_unknown_fields)]
enum Written {
    Decomposable {
        base: AnyKernel,
        matrix: OutputMatrix,
    },
    CurlFree {
        length_scale: f64,
    },
    #[serde(rename = "divergence_free", alias = "div_free")]
    DivergenceFree {
        length_scale: f64,
    },
    Helmholtz {
        length_scale: f64,
        curl_free: f64,
    },
}

impl TryFrom<Written> for OperatorKernel {
    type Error = Error;
    fn try_from(written: Written) -> Result<Self> {
        match written {
            Written::Decomposable { base, matrix } => Self::decomposable(base, matrix),
            Written::CurlFree { length_scale } => Self::curl_free(length_scale),
            Written::DivergenceFree { length_scale } => Self::div_free(length_scale),
            Written::Helmholtz { length_scale, curl_free } => Self::helmholtz(length_scale, curl_free),
        }
    }
}

impl From<OperatorKernel> for Written {
    fn from(kernel: OperatorKernel) -> Self {
        match kernel.kind {
            Kind::Decomposable { base, outputs } => Written::Decomposable { base, matrix: outputs },
            Kind::Field(Field { length_scale, div_free: 0.0, .. }) => Written::CurlFree { length_scale },
            Kind::Field(Field { length_scale, curl_free: 0.0, .. }) => Written::DivergenceFree { length_scale },
            Kind::Field(Field { length_scale, curl_free, .. }) => Written::Helmholtz { length_scale, curl_free },
        }
    }
}

impl OperatorKernel {
    /// All kernels whose values are matrices.
    pub const KINDS: &'static [Entry] = &[
        Entry::new(
            Sort::Kernel,
            "decomposable",
            "decomposable",
            "`k(x - y) A`: a scalar kernel times a matrix that says how outputs are related.",
            parameters! {
                /// How outputs are related: a positive semi-definite matrix, or `identity`; otherwise what the targets' correlations say.
                matrix: Option<OutputMatrix> = None,
                    Domain::Optional(&Domain::Either(&[Domain::Only("identity"), Domain::Matrix])), Kernel;
                /// The scalar kernel.
                base: String = "gaussian".into(), Domain::Word(BASES), Kernel;
                /// Distance over which the scalar kernel falls off.
                length_scale: f64 = 1.0, Domain::POSITIVE, Kernel;
                /// Smoothness of the Matern kernel.
                nu: f64 = 1.5, Domain::POSITIVE, Kernel, only for base = ["matern"];
                /// Norm of the Laplacian kernel.
                norm: u8 = 2, Domain::Whole(1, 2), Kernel, only for base = ["laplacian"];
            },
        ),
        Entry::new(
            Sort::Kernel,
            "curl_free",
            "curl-free",
            "Gradients of potentials: minus the second derivatives of a Gaussian kernel.",
            FIELD,
        ),
        Entry {
            aliases: &["div_free"],
            ..Entry::new(Sort::Kernel, "divergence_free", "divergence-free", "Flows without sources.", FIELD)
        },
        Entry::new(
            Sort::Kernel,
            "helmholtz",
            "Helmholtz",
            "Gradients and flows at once: every smooth field is a sum of both.",
            parameters! {
                /// Distance over which the Gaussian kernel falls off.
                length_scale: f64 = 1.0, Domain::POSITIVE, Kernel;
                /// Share of the curl-free part.
                curl_free: f64 = 0.5, Domain::Real(0.0, 1.0), Kernel;
            },
        ),
    ];

    /// What the catalogue says of the operator-valued kernel of this name.
    ///
    /// # Errors
    /// No such kernel, with all there are.
    pub fn entry_named(name: &str) -> Result<&'static Entry> {
        Entry::named(Self::KINDS.iter(), "kernel", name)
    }

    /// The kernel of this name, with defaults for all that is not given; `related` says how the outputs of a decomposable
    /// kernel are related where no matrix is given, and how many there are.
    ///
    /// # Errors
    /// No such kernel or parameter, or a value outside its domain: told with what there is.
    ///
    /// ```
    /// use bochner::kernel::OperatorKernel;
    /// let kernel = OperatorKernel::named("helmholtz", &[("curl_free", 0.3.into())], || Ok(ndarray::array![[1.0]]))?;
    /// assert_eq!(kernel, OperatorKernel::helmholtz(1.0, 0.3)?);
    /// # Ok::<(), bochner::Error>(())
    /// ```
    pub fn named(
        name: &str,
        given: &[(&str, Value)],
        related: impl FnOnce() -> Result<Array2<f64>>,
    ) -> Result<OperatorKernel> {
        let entry = Self::entry_named(name)?;
        for (name, value) in given {
            entry.parameter(name)?.check(value)?;
        }
        let value = |wanted: &str| given.iter().rev().find(|(name, _)| *name == wanted).map(|(_, value)| value.clone());
        let known = entry.parameters.iter().map(|p| (p.name, value(p.name).unwrap_or_else(|| p.default())));
        let mut parts: BTreeMap<&str, Value> = known.collect();
        if let Some(matrix) = parts.remove("matrix") {
            let base = parts["base"].to_string();
            let own = given.iter().filter(|(name, _)| !["base", "matrix"].contains(name));
            let base = AnyKernel::named(&base, 1, &own.cloned().collect::<Vec<_>>())?;
            let matrix = match matrix {
                Value::None => OutputMatrix::new(related()?.view())?,
                Value::Word(_) => OutputMatrix::identity(related()?.nrows())?,
                rows => serde_json::to_value(rows)
                    .and_then(serde_json::from_value)
                    .map_err(|e| Error::parameter("matrix", "positive semi-definite", e))?,
            };
            return Self::decomposable(base, matrix);
        }
        parts.insert("kernel", entry.name.into());
        let written = serde_json::to_value(parts).and_then(serde_json::from_value);
        written.map_err(|error| Error::Format { what: "description of a kernel", detail: error.to_string() })
    }

    /// `Helmholtz kernel, 30 % curl-free, length scale 0.7`: the kernel and all its numbers.
    pub fn in_words(&self) -> String {
        match &self.kind {
            Kind::Decomposable { base, outputs } => {
                format!("decomposable kernel of {} on a {}", words::things(outputs.len(), "output"), base.in_words())
            }
            Kind::Field(field) => {
                let scale = words::significant(field.length_scale, 4);
                format!("{}, length scale {scale}", self.parts_in_words().join(", "))
            }
        }
    }

    /// The kernel itself, then its parts, but for the length scale.
    pub(crate) fn parts_in_words(&self) -> Vec<String> {
        match &self.kind {
            Kind::Decomposable { base, .. } => {
                let mut words = vec!["decomposable kernel".to_owned(), format!("{} base", base.entry().title)];
                words.extend(base.numbers_in_words());
                words
            }
            Kind::Field(Field { div_free: 0.0, .. }) => vec!["curl-free kernel".into()],
            Kind::Field(Field { curl_free: 0.0, .. }) => vec!["divergence-free kernel".into()],
            Kind::Field(Field { curl_free, .. }) => {
                vec!["Helmholtz kernel".into(), format!("{:.0} % curl-free", 100.0 * curl_free)]
            }
        }
    }

    /// `k(x - z) A`.
    ///
    /// # Errors
    /// A scalar kernel that is not a function of `x - z`.
    pub fn decomposable(base: AnyKernel, outputs: OutputMatrix) -> Result<Self> {
        match base {
            AnyKernel::Gaussian(_) | AnyKernel::Laplacian(_) | AnyKernel::Matern(_) => {
                Ok(OperatorKernel { kind: Kind::Decomposable { base, outputs } })
            }
            other => Err(Error::parameter("base", "a Gaussian, Laplacian or Matérn kernel", format!("{other:?}"))),
        }
    }

    /// The curl-free kernel of length scale `ℓ`.
    ///
    /// # Errors
    /// A length scale that is not positive.
    pub fn curl_free(length_scale: f64) -> Result<Self> {
        Self::field(length_scale, 1.0, 0.0)
    }

    /// The divergence-free kernel of length scale `ℓ`.
    ///
    /// # Errors
    /// A length scale that is not positive.
    pub fn div_free(length_scale: f64) -> Result<Self> {
        Self::field(length_scale, 0.0, 1.0)
    }

    /// `curl_free` times the curl-free and `1 - curl_free` times the divergence-free kernel: every smooth field is a sum
    /// of both parts.
    ///
    /// # Errors
    /// A length scale that is not positive, or a weight outside of [0, 1].
    pub fn helmholtz(length_scale: f64, curl_free: f64) -> Result<Self> {
        check_non_negative("curl_free", curl_free)?;
        if curl_free > 1.0 {
            return Err(Error::parameter("curl_free", "a weight from 0 to 1", curl_free));
        }
        Self::field(length_scale, curl_free, 1.0 - curl_free)
    }

    fn field(length_scale: f64, curl_free: f64, div_free: f64) -> Result<Self> {
        check_positive("length_scale", length_scale)?;
        Ok(OperatorKernel { kind: Kind::Field(Field { length_scale, curl_free, div_free }) })
    }

    /// Scalar kernel and output matrix, where the kernel is decomposable.
    pub fn decomposed(&self) -> Option<(&AnyKernel, &OutputMatrix)> {
        match &self.kind {
            Kind::Decomposable { base, outputs } => Some((base, outputs)),
            Kind::Field(_) => None,
        }
    }

    pub(crate) fn as_field(&self) -> Option<Field> {
        match self.kind {
            Kind::Field(field) => Some(field),
            Kind::Decomposable { .. } => None,
        }
    }

    /// Number of outputs `p` for rows of length `input_dim`.
    pub fn output_dim(&self, input_dim: usize) -> usize {
        match &self.kind {
            Kind::Decomposable { outputs, .. } => outputs.len(),
            Kind::Field(_) => input_dim,
        }
    }

    /// `K(x, z)`, one row and one column per output.
    ///
    /// # Errors
    /// Rows of different lengths.
    pub fn evaluate(&self, x: &[f64], z: &[f64]) -> Result<Array2<f64>> {
        check_dim("length of the second row", x.len(), z.len())?;
        let p = self.output_dim(x.len());
        let mut out = Array2::zeros((p, p));
        match &self.kind {
            Kind::Decomposable { base, outputs } => out.scaled_add(base.evaluate(x, z), &outputs.matrix()),
            Kind::Field(field) => field.fill(x, z, out.as_slice_mut().expect("standard layout")),
        }
        Ok(out)
    }

    /// `K(xᵢ, zⱼ)` for all pairs of rows: shape (rows of `x`, rows of `z`, `p`, `p`), computed in `f64`.
    ///
    /// # Errors
    /// Rows of different lengths, NaN or infinities.
    pub fn matrix<R: Real>(&self, x: ArrayView2<'_, R>, z: ArrayView2<'_, R>) -> Result<Array4<R>> {
        check_dim("number of columns of the second rows", x.ncols(), z.ncols())?;
        let p = self.output_dim(x.ncols());
        need("matrices of an operator-valued kernel", bytes::<R>(&[x.nrows(), z.nrows(), p, p]), |free| {
            in_blocks(free / bytes::<R>(&[z.nrows(), p, p]).max(1))
        })?;
        let mut out = Array4::from_elem((x.nrows(), z.nrows(), p, p), R::ZERO);
        match &self.kind {
            Kind::Decomposable { base, outputs } => {
                let (x, z) = (x.mapv(Real::to_f64), z.mapv(Real::to_f64));
                let k = kernel_matrix(base, x.view(), z.view())?;
                k.axis_iter(Axis(0)).zip(out.axis_iter_mut(Axis(0))).in_parallel().for_each(|(k, mut out)| {
                    for (k, mut block) in k.iter().zip(out.axis_iter_mut(Axis(0))) {
                        block.zip_mut_with(&outputs.matrix(), |to, a| *to = R::from_f64(k * a));
                    }
                });
            }
            Kind::Field(field) => {
                check_finite("x", x, 0)?;
                check_finite("z", z, 0)?;
                let wide = |rows: ArrayView2<'_, R>| rows.mapv(Real::to_f64).as_standard_layout().into_owned();
                let (x, z) = (wide(x), wide(z));
                x.axis_iter(Axis(0)).zip(out.axis_iter_mut(Axis(0))).in_parallel().for_each_init(
                    || vec![0.0; p * p],
                    |block, (x, mut out)| {
                        let x = x.to_slice().expect("standard layout");
                        for (z, mut out) in z.axis_iter(Axis(0)).zip(out.axis_iter_mut(Axis(0))) {
                            field.fill(x, z.to_slice().expect("standard layout"), block);
                            out.iter_mut().zip(&*block).for_each(|(to, from)| *to = R::from_f64(*from));
                        }
                    },
                );
            }
        }
        Ok(out)
    }
}

impl Field {
    /// `(a, b)` with `K = aI + bδδᵀ` in dimension `dim`, at `|δ|² = distance_sq`.
    #[inline(always)]
    pub(crate) fn parts(&self, dim: usize, distance_sq: f64) -> (f64, f64) {
        let s = 1.0 / self.length_scale / self.length_scale;
        let r = s * distance_sq;
        let k = libm::exp(-0.5 * r);
        let a = k * s * (self.curl_free + self.div_free * (dim as f64 - 1.0 - r));
        (a, k * s * s * (self.div_free - self.curl_free))
    }

    /// `K(x, z)`, row-major.
    fn fill(&self, x: &[f64], z: &[f64], out: &mut [f64]) {
        let d = x.len();
        let (a, b) = self.parts(d, distance_sq(x, z));
        for i in 0..d {
            let row = b * (x[i] - z[i]);
            for j in 0..d {
                out[i * d + j] = row * (x[j] - z[j]);
            }
            out[i * d + i] += a;
        }
    }

    /// `out += K(x, z) v`.
    pub(crate) fn add_product(&self, x: &[f64], z: &[f64], v: &[f64], out: &mut [f64]) {
        let (a, b) = self.parts(x.len(), distance_sq(x, z));
        let along = b * x.iter().zip(z).zip(v).map(|((x, z), v)| (x - z) * v).sum::<f64>();
        for (((out, x), z), v) in out.iter_mut().zip(x).zip(z).zip(v) {
            *out += a * v + along * (x - z);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Gaussian, Laplacian, Matern, Polynomial};
    use crate::linalg::{Eigen, Lower};
    use crate::random::{Role, Seed, Stream};
    use ndarray::array;

    fn points(n: usize, d: usize) -> Array2<f64> {
        let mut values = vec![0.0; n * d];
        Stream::new(Seed::new(5), Role::Noise, d as u64).normals_from(0, &mut values);
        Array2::from_shape_vec((n, d), values).unwrap()
    }

    fn kernels(d: usize) -> Vec<OperatorKernel> {
        let outputs = OutputMatrix::new(array![[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 0.7]].view()).unwrap();
        let scale = (d as f64).sqrt();
        vec![
            OperatorKernel::curl_free(scale).unwrap(),
            OperatorKernel::div_free(scale).unwrap(),
            OperatorKernel::helmholtz(scale, 0.3).unwrap(),
            OperatorKernel::decomposable(Gaussian::new(scale).unwrap().into(), outputs.clone()).unwrap(),
            OperatorKernel::decomposable(Matern::new(1.5, scale).unwrap().into(), outputs.clone()).unwrap(),
            OperatorKernel::decomposable(Laplacian::new(scale, 1).unwrap().into(), outputs).unwrap(),
        ]
    }

    #[test]
    fn kernel_matrices_are_positive_semi_definite_on_random_points() {
        for d in [1, 2, 3, 5] {
            let x = points(20, d);
            for kernel in kernels(d) {
                let k = kernel.matrix(x.view(), x.view()).unwrap();
                let p = kernel.output_dim(d);
                let order = 20 * p;
                let square: Vec<f64> = (0..order * order)
                    .map(|e| (e / order, e % order))
                    .map(|(r, c)| k[[r / p, c / p, r % p, c % p]])
                    .collect();
                for r in 0..order {
                    for c in 0..r {
                        assert!((square[r * order + c] - square[c * order + r]).abs() < 1e-14);
                    }
                }
                let eigen = Eigen::new(Lower::from_square(&square, order).unwrap()).unwrap();
                let (least, most) = (eigen.values()[0], eigen.values()[order - 1]);
                assert!(least > -1e-13 * most.max(1.0), "{kernel:?}: {least}, {most}");
            }
        }
    }

    #[test]
    fn fields_are_second_derivatives_of_the_gaussian_kernel() {
        let base = Gaussian::new(1.3).unwrap();
        let (x, z) = ([0.4, -0.7, 1.1], [-0.2, 0.3, 0.6]);
        let h = 1e-4;
        // Derivatives in x by central differences.
        let hessian = Array2::from_shape_fn((3, 3), |(i, j)| {
            let at = |a: f64, b: f64| {
                let mut y = x;
                y[i] += a;
                y[j] += b;
                base.evaluate(&y, &z)
            };
            (at(h, h) - at(h, -h) - at(-h, h) + at(-h, -h)) / (4.0 * h * h)
        });
        let trace: f64 = hessian.diag().sum();
        let curl = OperatorKernel::curl_free(1.3).unwrap().evaluate(&x, &z).unwrap();
        let div = OperatorKernel::div_free(1.3).unwrap().evaluate(&x, &z).unwrap();
        let both = OperatorKernel::helmholtz(1.3, 0.25).unwrap().evaluate(&x, &z).unwrap();
        for ((i, j), second) in hessian.indexed_iter() {
            assert!((curl[[i, j]] + second).abs() < 1e-7);
            let laplacian = if i == j { trace } else { 0.0 };
            assert!((div[[i, j]] - (second - laplacian)).abs() < 1e-7);
            assert!((both[[i, j]] - (0.25 * curl[[i, j]] + 0.75 * div[[i, j]])).abs() < 1e-15);
        }
    }

    #[test]
    fn matrices_hold_single_evaluations_and_products_use_them() {
        let (x, z) = (points(4, 3), points(5, 3) + 0.5);
        for kernel in kernels(3) {
            let all = kernel.matrix(x.view(), z.view()).unwrap();
            assert_eq!(all.dim(), (4, 5, 3, 3));
            for (i, j) in [(0, 0), (3, 4), (1, 2)] {
                let (x, z) = (x.row(i), z.row(j));
                let one = kernel.evaluate(x.as_slice().unwrap(), z.as_slice().unwrap()).unwrap();
                assert!((&all.slice(ndarray::s![i, j, .., ..]) - &one).iter().all(|v| v.abs() < 1e-14));
                if let Some(field) = kernel.as_field() {
                    let (v, mut out) = (array![0.3, -1.0, 2.0], vec![0.0; 3]);
                    field.add_product(x.as_slice().unwrap(), z.as_slice().unwrap(), v.as_slice().unwrap(), &mut out);
                    assert!((one.dot(&v) - ndarray::aview1(&out)).iter().all(|v| v.abs() < 1e-14));
                }
            }
        }
        // In one dimension only constants have no divergence.
        let line = OperatorKernel::div_free(1.0).unwrap().matrix(points(3, 1).view(), points(3, 1).view()).unwrap();
        assert!(line.iter().all(|v| v.abs() < 1e-15));
    }

    #[test]
    fn descriptions_survive_a_file_and_bad_ones_are_refused() {
        for kernel in kernels(2) {
            let text = serde_json::to_string(&kernel).unwrap();
            assert_eq!(serde_json::from_str::<OperatorKernel>(&text).unwrap(), kernel);
        }
        let text = serde_json::to_string(&OperatorKernel::curl_free(2.0).unwrap()).unwrap();
        assert_eq!(text, r#"{"kernel":"curl_free","length_scale":2.0}"#);
        assert!(OperatorKernel::curl_free(-1.0).is_err());
        assert!(OperatorKernel::helmholtz(1.0, 1.5).is_err());
        let identity = OutputMatrix::identity(2).unwrap();
        assert!(OperatorKernel::decomposable(Polynomial::homogeneous(2).into(), identity).is_err());
        let kernel = OperatorKernel::curl_free(1.0).unwrap();
        assert!(kernel.matrix(points(2, 2).view(), points(2, 3).view()).is_err());
        assert!(kernel.evaluate(&[1.0], &[1.0, 2.0]).is_err());
    }
}
