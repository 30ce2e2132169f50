use super::{AnyKernel, Gaussian, Kernel, Laplacian, Matern, OutputMatrix, kernel_matrix};
use crate::error::{Error, Result, check_dim, check_non_negative, check_positive};
use crate::memory::{bytes, in_blocks, need};
use crate::parallel::Parallel;
use crate::parameter::{Domain, Entry, Parameter, Sort, Value, Word, parameters};
use crate::preprocess::LengthScale;
use crate::rows::check_finite;
use crate::scalar::Real;
use crate::special::{ln_gamma, matern};
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
/// divergence-free kernel is 0. They take one length scale for each input, and a Matérn kernel with `ν > 1` in place of `k₀`
/// ([`FieldKernel`] has the formulas).
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
    Field(FieldKernel),
}

/// A curl-free and a divergence-free kernel with their weights: minus second derivatives of a scalar kernel `k₀`, and those
/// with the trace taken off.
///
/// With `q = Σ δᵢ²/ℓᵢ²`, `S = diag(1/ℓᵢ²)`, `u = Sδ` and `k₀(δ) = g(q)` the second derivatives are `2g'S + 4g''uuᵀ`, so that
/// `K = (c - v)(aS - buuᵀ) + v(a tr S - b|u|²)I` with `a = -2g'`, `b = 4g''` and weights `c` of the curl-free, `v` of the
/// divergence-free part. For the Gaussian kernel `a = b = k₀`; for a Matérn kernel, where `ν > 1` is needed,
/// `a = ν/(ν-1) k_{ν-1}` and `b = ν²/((ν-1)(ν-2)) k_{ν-2}`, all at `z = √(2νq)`.
///
/// ```
/// use bochner::kernel::{FieldKernel, OperatorKernel};
/// let kernel: OperatorKernel = FieldKernel::new(0.3).with_length_scale([0.5, 2.0]).with_matern(2.5).build()?;
/// assert_eq!(kernel.evaluate(&[0.0, 0.0], &[0.0, 0.0])?[[0, 1]], 0.0);
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct FieldKernel {
    pub(crate) length_scale: LengthScale,
    /// Smoothness of a Matérn kernel; none of the Gaussian one.
    pub(crate) nu: Option<f64>,
    pub(crate) curl_free: f64,
    pub(crate) div_free: f64,
}

/// Parameters of the kernels of fields.
const FIELD: &[Parameter] = parameters! {
    /// Distance over which the scalar kernel falls off, or one for each input.
    length_scale: LengthScale = LengthScale::Same(1.0), LENGTH_SCALES, Kernel;
    /// The scalar kernel whose second derivatives it is.
    base: String = "gaussian".into(), Domain::Word(SMOOTH_BASES), Kernel;
    /// Smoothness of the Matern kernel, above 1; above 2 the field has derivatives.
    nu: f64 = 2.5, Domain::POSITIVE, Kernel, only for base = ["matern"];
};

/// A number, or one for each input.
const LENGTH_SCALES: Domain = Domain::Either(&[Domain::POSITIVE, Domain::List(&Domain::POSITIVE)]);

/// Scalar kernels with second derivatives.
const SMOOTH_BASES: &[Word] =
    &[Word::new(Gaussian::ENTRY.name, Gaussian::ENTRY.about), Word::new(Matern::ENTRY.name, Matern::ENTRY.about)];

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
        length_scale: LengthScale,
        #[serde(default, skip_serializing_if = "Smooth::is_gaussian")]
        base: Smooth,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nu: Option<f64>,
    },
    #[serde(rename = "divergence_free", alias = "div_free")]
    DivergenceFree {
        length_scale: LengthScale,
        #[serde(default, skip_serializing_if = "Smooth::is_gaussian")]
        base: Smooth,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nu: Option<f64>,
    },
    Helmholtz {
        length_scale: LengthScale,
        curl_free: f64,
        #[serde(default, skip_serializing_if = "Smooth::is_gaussian")]
        base: Smooth,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nu: Option<f64>,
    },
}

/// The scalar kernel of a field, by its name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Smooth {
    #[default]
    Gaussian,
    Matern,
}

impl Smooth {
    fn is_gaussian(&self) -> bool {
        *self == Smooth::Gaussian
    }

    /// Smoothness, where it has one.
    fn nu(self, given: Option<f64>) -> Option<f64> {
        (self == Smooth::Matern).then(|| given.unwrap_or(2.5))
    }
}

impl TryFrom<Written> for OperatorKernel {
    type Error = Error;
    fn try_from(written: Written) -> Result<Self> {
        let (length_scale, nu, curl_free, div_free) = match written {
            Written::Decomposable { base, matrix } => return Self::decomposable(base, matrix),
            Written::CurlFree { length_scale, base, nu } => (length_scale, base.nu(nu), 1.0, 0.0),
            Written::DivergenceFree { length_scale, base, nu } => (length_scale, base.nu(nu), 0.0, 1.0),
            Written::Helmholtz { length_scale, curl_free, base, nu } => {
                (length_scale, base.nu(nu), curl_free, 1.0 - curl_free)
            }
        };
        FieldKernel { length_scale, nu, curl_free, div_free }.build()
    }
}

impl From<OperatorKernel> for Written {
    fn from(kernel: OperatorKernel) -> Self {
        match kernel.kind {
            Kind::Decomposable { base, outputs } => Written::Decomposable { base, matrix: outputs },
            Kind::Field(FieldKernel { length_scale, nu, curl_free, div_free }) => {
                let base = if nu.is_some() { Smooth::Matern } else { Smooth::Gaussian };
                match (curl_free, div_free) {
                    (_, 0.0) => Written::CurlFree { length_scale, base, nu },
                    (0.0, _) => Written::DivergenceFree { length_scale, base, nu },
                    _ => Written::Helmholtz { length_scale, curl_free, base, nu },
                }
            }
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
            "Gradients of potentials: minus the second derivatives of a scalar kernel.",
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
                /// Distance over which the scalar kernel falls off, or one for each input.
                length_scale: LengthScale = LengthScale::Same(1.0), LENGTH_SCALES, Kernel;
                /// Share of the curl-free part.
                curl_free: f64 = 0.5, Domain::Real(0.0, 1.0), Kernel;
                /// The scalar kernel whose second derivatives it is.
                base: String = "gaussian".into(), Domain::Word(SMOOTH_BASES), Kernel;
                /// Smoothness of the Matern kernel, above 1; above 2 the field has derivatives.
                nu: f64 = 2.5, Domain::POSITIVE, Kernel, only for base = ["matern"];
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
        if parts.get("base") == Some(&Value::Word("gaussian".into())) {
            parts.remove("nu");
        }
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
                let scales = match &field.length_scale {
                    LengthScale::PerInput(scales) => {
                        let each: Vec<String> = scales.iter().map(|scale| words::significant(*scale, 4)).collect();
                        format!("length scales {}", each.join(" and "))
                    }
                    LengthScale::Same(scale) => format!("length scale {}", words::significant(*scale, 4)),
                    _ => unreachable!("checked when it was made"),
                };
                format!("{}, {scales}", self.parts_in_words().join(", "))
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
            Kind::Field(field) => {
                let mut words = match (field.curl_free, field.div_free) {
                    (_, 0.0) => vec!["curl-free kernel".into()],
                    (0.0, _) => vec!["divergence-free kernel".into()],
                    (share, _) => vec!["Helmholtz kernel".into(), format!("{:.0} % curl-free", 100.0 * share)],
                };
                if let Some(nu) = field.nu {
                    words.extend(["Matern base".into(), format!("nu {nu}")]);
                }
                words
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
        FieldKernel::new(1.0).with_length_scale(length_scale).build()
    }

    /// The divergence-free kernel of length scale `ℓ`.
    ///
    /// # Errors
    /// A length scale that is not positive.
    pub fn div_free(length_scale: f64) -> Result<Self> {
        FieldKernel::new(0.0).with_length_scale(length_scale).build()
    }

    /// `curl_free` times the curl-free and `1 - curl_free` times the divergence-free kernel: every smooth field is a sum
    /// of both parts.
    ///
    /// # Errors
    /// A length scale that is not positive, or a weight outside of [0, 1].
    pub fn helmholtz(length_scale: f64, curl_free: f64) -> Result<Self> {
        FieldKernel::new(curl_free).with_length_scale(length_scale).build()
    }

    /// Scalar kernel and output matrix, where the kernel is decomposable.
    pub fn decomposed(&self) -> Option<(&AnyKernel, &OutputMatrix)> {
        match &self.kind {
            Kind::Decomposable { base, outputs } => Some((base, outputs)),
            Kind::Field(_) => None,
        }
    }

    /// Length scales, weights and scalar kernel, where it is the kernel of a field.
    pub fn as_field(&self) -> Option<&FieldKernel> {
        match &self.kind {
            Kind::Field(field) => Some(field),
            Kind::Decomposable { .. } => None,
        }
    }

    /// Refuses rows that it has no functions of: as many length scales as inputs, and no flow without sources of a single
    /// input but constants.
    ///
    /// # Errors
    /// Another number of inputs.
    pub fn check_inputs(&self, input_dim: usize) -> Result<()> {
        let Some(field) = self.as_field() else { return Ok(()) };
        field.length_scale.check(input_dim)?;
        if input_dim < 2 && field.div_free > 0.0 {
            let expected = "at least 2 for a divergence-free part: of a single input only constants have no divergence";
            return Err(Error::parameter("number of input columns", expected, input_dim));
        }
        Ok(())
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
            Kind::Field(field) => {
                field.length_scale.check(x.len())?;
                field.at(x.len()).fill(x, z, out.as_slice_mut().expect("standard layout"));
            }
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
                field.length_scale.check(x.ncols())?;
                let field = field.at(x.ncols());
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

impl FieldKernel {
    /// `curl_free` times the curl-free and `1 - curl_free` times the divergence-free kernel over the Gaussian kernel of
    /// length scale 1.
    pub fn new(curl_free: f64) -> Self {
        FieldKernel { length_scale: LengthScale::Same(1.0), nu: None, curl_free, div_free: 1.0 - curl_free }
    }

    /// With one length scale, or one for each input.
    pub fn with_length_scale(self, length_scale: impl Into<LengthScale>) -> Self {
        FieldKernel { length_scale: length_scale.into(), ..self }
    }

    /// Over a Matérn kernel of this smoothness.
    pub fn with_matern(self, nu: f64) -> Self {
        FieldKernel { nu: Some(nu), ..self }
    }

    /// The kernel.
    ///
    /// # Errors
    /// A share outside of [0, 1], length scales that are not positive, and a Matérn kernel without second derivatives.
    pub fn build(self) -> Result<OperatorKernel> {
        check_non_negative("curl_free", self.curl_free)?;
        if self.curl_free > 1.0 {
            return Err(Error::parameter("curl_free", "a weight from 0 to 1", self.curl_free));
        }
        match &self.length_scale {
            LengthScale::Same(scale) => check_positive("length_scale", *scale)?,
            LengthScale::PerInput(scales) => self.length_scale.check(scales.len())?,
            other => {
                let found = serde_json::to_string(other).unwrap_or_default();
                return Err(Error::parameter("length_scale", "a positive number, or one for each input", found));
            }
        }
        if let Some(nu) = self.nu.filter(|nu| !(nu.is_finite() && *nu > 1.0)) {
            let expected = "above 1: rougher Matern kernels have no second derivatives";
            return Err(Error::parameter("nu", expected, nu));
        }
        Ok(OperatorKernel { kind: Kind::Field(self) })
    }

    /// What divides inputs.
    pub fn length_scale(&self) -> &LengthScale {
        &self.length_scale
    }

    /// Smoothness of the Matérn kernel underneath; `None` for the Gaussian one.
    pub fn nu(&self) -> Option<f64> {
        self.nu
    }

    /// Weight of the curl-free part; the other has the rest of 1.
    pub fn curl_free_share(&self) -> f64 {
        self.curl_free
    }

    /// The same for rows of length `dim`, whose number of length scales was checked.
    pub(crate) fn at(&self, dim: usize) -> FieldAt<'_> {
        let precisions: Vec<f64> = match &self.length_scale {
            LengthScale::PerInput(scales) => scales.iter().map(|scale| 1.0 / scale / scale).collect(),
            LengthScale::Same(scale) => vec![1.0 / scale / scale; dim],
            _ => unreachable!("checked when it was made"),
        };
        FieldAt { field: self, trace: precisions.iter().sum(), precisions }
    }
}

/// The kernel of a field for rows of a known length.
#[derive(Debug, Clone)]
pub(crate) struct FieldAt<'a> {
    pub(crate) field: &'a FieldKernel,
    /// `1/ℓᵢ²`.
    pub(crate) precisions: Vec<f64>,
    /// Their sum.
    pub(crate) trace: f64,
}

impl FieldAt<'_> {
    /// `q = Σ sᵢδᵢ²` and `|u|²` with `u = Sδ`.
    #[inline(always)]
    fn lengths(&self, x: &[f64], z: &[f64]) -> (f64, f64) {
        let mut sums = (0.0, 0.0);
        for ((x, z), s) in x.iter().zip(z).zip(&self.precisions) {
            let u = s * (x - z);
            sums.0 += u * (x - z);
            sums.1 += u * u;
        }
        sums
    }

    /// `(-2)ᵏ g⁽ᵏ⁾(q)` for `k = 1, …, 4`: all are `k₀` for the Gaussian kernel. Those that a Matérn kernel does not have at 0 are
    /// 0 there: they stand in front of powers of the distance that fall faster.
    pub(crate) fn derivatives(&self, q: f64) -> [f64; 4] {
        match self.field.nu {
            None => [libm::exp(-0.5 * q); 4],
            Some(nu) => {
                let z = (2.0 * nu * q).sqrt();
                [1, 2, 3, 4].map(|k| (2.0 * nu).powi(k) * lowered(nu, k, z))
            }
        }
    }

    /// `a = -2g'` and `b = 4g''`.
    #[inline(always)]
    fn slopes(&self, q: f64) -> (f64, f64) {
        match self.field.nu {
            None => {
                let k = libm::exp(-0.5 * q);
                (k, k)
            }
            Some(nu) => {
                let z = (2.0 * nu * q).sqrt();
                (2.0 * nu * lowered(nu, 1, z), 4.0 * nu * nu * lowered(nu, 2, z))
            }
        }
    }

    /// `K(x, z)`, row-major.
    pub(crate) fn fill(&self, x: &[f64], z: &[f64], out: &mut [f64]) {
        let d = x.len();
        let (q, length_sq) = self.lengths(x, z);
        let (a, b) = self.slopes(q);
        let (curl, div) = (self.field.curl_free, self.field.div_free);
        let own = div * (a * self.trace - b * length_sq);
        for i in 0..d {
            let row = (div - curl) * b * self.precisions[i] * (x[i] - z[i]);
            for j in 0..d {
                out[i * d + j] = row * self.precisions[j] * (x[j] - z[j]);
            }
            out[i * d + i] += own + (curl - div) * a * self.precisions[i];
        }
    }

    /// `out += K(x, z) v`.
    pub(crate) fn add_product(&self, x: &[f64], z: &[f64], v: &[f64], out: &mut [f64]) {
        let (q, length_sq) = self.lengths(x, z);
        let (a, b) = self.slopes(q);
        let (curl, div) = (self.field.curl_free, self.field.div_free);
        let own = div * (a * self.trace - b * length_sq);
        let u = |i: usize| self.precisions[i] * (x[i] - z[i]);
        let along = (div - curl) * b * (0..x.len()).map(|i| u(i) * v[i]).sum::<f64>();
        for (i, out) in out.iter_mut().enumerate() {
            *out += (own + (curl - div) * a * self.precisions[i]) * v[i] + along * u(i);
        }
    }
}

/// `2^(1-ν)/Γ(ν) zᵛ⁻ᵏ K_{ν-k}(z)`: what derivatives of a Matérn kernel by `z²` are made of, each `-1/2` times the next one.
fn lowered(nu: f64, k: i32, z: f64) -> f64 {
    let order = nu - f64::from(k);
    // zᵘK_u(z) = 2^(u-1) Γ(u) times the Matérn function of order u.
    let size = |u: f64| libm::exp((u - nu) * std::f64::consts::LN_2 + ln_gamma(u) - ln_gamma(nu));
    if order > 0.0 {
        return size(order) * matern(order, z);
    }
    if z <= 0.0 {
        return 0.0;
    }
    if order < 0.0 {
        // K_{-u} = K_u.
        return z.powf(2.0 * order) * size(-order) * matern(-order, z);
    }
    // K₀ = K₂ - (2/z)K₁.
    (size(2.0) * matern(2.0, z) - 2.0 * size(1.0) * matern(1.0, z)) / (z * z)
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
            stretched(0.3, d).build().unwrap(),
            stretched(1.0, d).with_matern(2.5).build().unwrap(),
            stretched(0.0, d).with_matern(1.2).build().unwrap(),
            OperatorKernel::decomposable(Gaussian::new(scale).unwrap().into(), outputs.clone()).unwrap(),
            OperatorKernel::decomposable(Matern::new(1.5, scale).unwrap().into(), outputs.clone()).unwrap(),
            OperatorKernel::decomposable(Laplacian::new(scale, 1).unwrap().into(), outputs).unwrap(),
        ]
    }

    /// A field with one length scale for each input.
    fn stretched(curl_free: f64, d: usize) -> FieldKernel {
        let scales = (0..d).map(|i| (d as f64).sqrt() * (1.0 + 0.4 * i as f64)).collect();
        FieldKernel::new(curl_free).with_length_scale(LengthScale::PerInput(scales))
    }

    #[test]
    fn fields_of_any_base_are_second_derivatives_of_it() {
        let scales = [0.8, 1.3, 2.0];
        let (x, z) = ([0.4, -0.7, 1.1], [-0.2, 0.3, 0.6]);
        let bases = [None, Some(1.5), Some(2.0), Some(2.3), Some(2.5), Some(3.0), Some(4.5)];
        for nu in bases {
            let base: AnyKernel = match nu {
                None => Gaussian::new(1.0).unwrap().into(),
                Some(nu) => Matern::new(nu, 1.0).unwrap().into(),
            };
            let at = |y: [f64; 3]| {
                let over = |y: [f64; 3]| [y[0] / scales[0], y[1] / scales[1], y[2] / scales[2]];
                base.evaluate(&over(y), &over(z))
            };
            let h = 1e-3;
            let hessian = Array2::from_shape_fn((3, 3), |(i, j)| {
                let moved = |a: f64, b: f64| {
                    let mut y = x;
                    y[i] += a;
                    y[j] += b;
                    at(y)
                };
                (moved(h, h) - moved(h, -h) - moved(-h, h) + moved(-h, -h)) / (4.0 * h * h)
            });
            let trace: f64 = hessian.diag().sum();
            let field = FieldKernel { nu, ..FieldKernel::new(0.25).with_length_scale(scales) }.build().unwrap();
            let found = field.evaluate(&x, &z).unwrap();
            for ((i, j), second) in hessian.indexed_iter() {
                let laplacian = if i == j { trace } else { 0.0 };
                let expected = -0.25 * second + 0.75 * (second - laplacian);
                // Truncation is h²/6 times fourth derivatives of size ten, rounding 1e-16/h².
                assert!((found[[i, j]] - expected).abs() < 3e-5, "{nu:?}: {} {expected}", found[[i, j]]);
            }
            // At equal rows: the limit of small distances, from which a field of smoothness ν - 1 is off by its power.
            let near = field.evaluate(&[1e-7, 0.0, 0.0], &[0.0; 3]).unwrap();
            let same = field.evaluate(&[0.0; 3], &[0.0; 3]).unwrap();
            assert!((near - &same).iter().all(|v| v.abs() < 1e-5 * same[[0, 0]]), "{nu:?}");
        }
    }

    #[test]
    fn fields_with_length_scales_and_matern_bases_are_written_and_refused() {
        let kernel = stretched(0.3, 2).with_matern(3.5).build().unwrap();
        let text = serde_json::to_string(&kernel).unwrap();
        assert_eq!(serde_json::from_str::<OperatorKernel>(&text).unwrap(), kernel);
        assert_eq!(
            kernel.in_words(),
            "Helmholtz kernel, 30 % curl-free, Matern base, nu 3.5, length scales 1.414 and 1.980"
        );
        let given = [("length_scale", Value::List(vec![1.0.into(), 2.0.into()])), ("base", "matern".into())];
        let named = OperatorKernel::named("curl_free", &given, || Ok(Array2::eye(1))).unwrap();
        assert_eq!(named, FieldKernel::new(1.0).with_length_scale([1.0, 2.0]).with_matern(2.5).build().unwrap());
        assert!(FieldKernel::new(0.5).with_matern(1.0).build().is_err());
        assert!(FieldKernel::new(0.5).with_length_scale([1.0, -1.0]).build().is_err());
        assert!(kernel.check_inputs(3).is_err() && kernel.check_inputs(2).is_ok());
        assert!(kernel.matrix(points(2, 3).view(), points(2, 3).view()).is_err());
        let told = OperatorKernel::div_free(1.0).unwrap().check_inputs(1).unwrap_err().to_string();
        assert!(told.contains("only constants have no divergence"), "{told}");
        assert!(OperatorKernel::curl_free(1.0).unwrap().check_inputs(1).is_ok());
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
                    field.at(3).add_product(
                        x.as_slice().unwrap(),
                        z.as_slice().unwrap(),
                        v.as_slice().unwrap(),
                        &mut out,
                    );
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
