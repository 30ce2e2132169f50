use super::{ComplexFourier, Fourier, Frequencies};
use crate::error::{Error, Result, check_count, check_positive};
use crate::feature::DrawCost;
use crate::feature::spec::Candidate;
use crate::feature::{ComplexToReal, Describe, DynComplexMap, DynMap, Prediction};
use crate::kernel::AnyKernel;
use crate::kernel::{Gaussian, Kernel, Laplacian, LowOrder, LowOrderLaplacian, Matern, Scaled, kernel_matrix};
use crate::parameter::{Domain, description, words};
use crate::preprocess::LengthScale;
use crate::projection::{self, Given, HadamardChain, Orthogonal, Projection, Sparse};
use crate::random::{Role, Seed, Stream};
use crate::scalar::Real;
use crate::variance::{EqualLengths, Form, MixedLengths, at_multiples, fourier, fourier_orthogonal};
use ndarray::{Array2, ArrayView2, Zip};
use std::sync::Arc;

words! {
    /// Shift-invariant kernels with Fourier features.
    pub enum FourierKernel {
        /// `exp(-|x - y|²/2ℓ²)`.
        Gaussian = "gaussian",
        /// `exp(-|x - y|/ℓ)` of norm 1 or 2.
        Laplacian = "laplacian",
        /// Matérn kernel of smoothness ν.
        Matern = "matern",
    }
}

words! {
    /// How directions are drawn.
    pub enum Directions {
        /// The fastest of the others that is as accurate: see [`Directions::choose`].
        Auto = "auto",
        /// Independent normal directions, stored.
        Gaussian = "gaussian",
        /// Haar-orthogonal blocks with independent lengths, stored: unbiased, never a larger variance for close pairs.
        Orthogonal = "orthogonal",
        /// Hadamard chains: nothing but signs stored, `O(log d)` per feature, biased by about `1/d'`.
        Sorf = "sorf",
    }
}

impl Directions {
    /// What `Auto` stands for with `count` directions in dimension `input_dim`; the others stand for themselves.
    ///
    /// A Hadamard chain is chosen where it is faster than a product and its bias cannot be seen. Its rows all have the
    /// length `√d'` (`d'` is the padded dimension), so its mean differs from the kernel by about `-t⁴ e^(-t²/2)/4d'` at
    /// distance `t`: measured with three sign diagonals, in dimensions 16 to 512, for dense, padded and sparse
    /// differences alike, the factor of `1/d'` was 0.15 at `t = 1`, 0.42 at `t = 3/2` and 0.56 at `t = 2` (the formula
    /// gives 0.15, 0.41, 0.54), and below 0.7 everywhere. The variance of the same maps was 0.016/M, 0.13/M and 0.34/M.
    /// Over distances from half a length scale to two the mean squared bias is thus `0.10/d'²` and the mean variance
    /// `0.09/M`: the squared bias stays below a tenth of the variance while `10 M ≤ d'²`, which is the rule.
    ///
    /// Otherwise blocks are made orthogonal, which costs about `M d²` multiplications once, unless that would take more
    /// than seconds (`M d² > 2³⁶`) or there is only one dimension.
    pub fn choose(self, input_dim: usize, count: usize) -> Directions {
        if self != Directions::Auto {
            return self;
        }
        let padded = input_dim.checked_next_power_of_two().unwrap_or(usize::MAX) as f64;
        let (d, m) = (input_dim as f64, count as f64);
        // A product takes M d multiplications, the chain 3 d' log d' additions per d' directions at a quarter of the speed.
        let faster = m * d > 4.0 * padded * padded.log2();
        if faster && 10.0 * m <= padded * padded {
            Directions::Sorf
        } else if input_dim > 1 && m * d * d <= (1u64 << 36) as f64 {
            Directions::Orthogonal
        } else {
            Directions::Gaussian
        }
    }

    /// Refuses to say how large the errors of Hadamard chains of very few columns are: in two dimensions they have four
    /// directions and in four 24, which no distribution stands for.
    /// What it costs to draw `count` of them for rows of length `input_dim`.
    pub(crate) fn draw_cost(self, count: usize, input_dim: usize) -> DrawCost {
        match self {
            Directions::Sorf => DrawCost::listed(count.max(input_dim)),
            Directions::Orthogonal => DrawCost::orthogonal(count, input_dim),
            Directions::Gaussian | Directions::Auto => DrawCost::stored(count, input_dim),
        }
    }

    pub(crate) fn check_chain(input_dim: usize) -> Result<()> {
        if input_dim > 4 {
            return Ok(());
        }
        Err(Error::Unsupported {
            what: "projection",
            reason: "the error of Hadamard chains is known for 5 columns and more; with fewer they have a handful of \
                     directions, and other projections cost no more"
                .into(),
        })
    }
}

description! {
    /// Description of Fourier features, with the parameters and defaults of the Python class `FourierFeatures`.
    ///
    /// ```
    /// use bochner::feature::{Describe, FourierSpec};
    /// let spec = FourierSpec { length_scale: 2.0.into(), seed: 7, ..FourierSpec::default() };
    /// let map = spec.build::<f64>(5)?;
    /// let rows = ndarray::array![[1.0, 2.0, 3.0, 4.0, 5.0]];
    /// let features = map.transform(rows.view())?;
    /// let estimate = features.row(0).dot(&features.row(0));
    /// assert!((estimate - 1.0).abs() < 1e-12);
    /// # Ok::<(), bochner::Error>(())
    /// ```
    pub struct FourierSpec {
        /// Budget of output columns; one fewer is used where they come in pairs and the budget is odd. Complex columns for the
        /// complex form.
        n_components: usize = 1024, Domain::FEATURES, Size;
        /// The kernel to estimate.
        kernel: FourierKernel = FourierKernel::Gaussian, Domain::Word(FourierKernel::CHOICES), Kernel;
        /// Distance over which the kernel falls off, one for all columns or one for each; `median` takes the median distance
        /// between rows. Rows of numbers are a matrix by which rows are multiplied.
        length_scale: LengthScale = LengthScale::Same(1.0), Domain::LENGTH_SCALE, Kernel;
        /// Smoothness of the Matern kernel.
        nu: f64 = 1.5, Domain::POSITIVE, Kernel, only for kernel = ["matern"];
        /// Norm of the Laplacian kernel: 2 is the Euclidean one, 1 the sum of absolute values.
        norm: u8 = 2, Domain::Whole(1, 2), Kernel, only for kernel = ["laplacian"];
        /// Columns that every frequency touches, drawn anew for each: the kernel is then the mean over subsets of so many columns.
        /// None means all columns. For the Gaussian kernel and the Laplacian one of norm 1.
        order: Option<usize> = None, Domain::Optional(&Domain::COUNT), Kernel;
        /// How frequencies are drawn; `auto` takes the fastest one whose bias hides below the sampling error.
        projection: Directions = Directions::Auto, Domain::Word(Directions::CHOICES), Draw;
        /// Pairs of cosine and sine, a cosine with a random offset, or complex exponentials (complex output).
        form: Form = Form::CosSin, Domain::Word(Form::CHOICES), Draw;
    }
    map "fourier" for ["gaussian", "laplacian", "matern", "low_order"], "Fourier features":
        "Cosines and sines of projections on frequencies drawn from the kernel's spectrum.";
}

/// Label of the seed's child from which radii are drawn: orthogonal projections use the radius role of the seed itself.
const RADII: u64 = 1;

impl FourierSpec {
    /// Number of frequencies `M`.
    ///
    /// # Errors
    /// A budget without room for one.
    pub fn frequencies(&self) -> Result<usize> {
        check_count("n_components", self.n_components)?;
        match self.form {
            Form::CosSin if self.n_components < 2 => {
                Err(Error::parameter("n_components", "at least 2 for pairs of cosine and sine", self.n_components))
            }
            Form::CosSin => Ok(self.n_components / 2),
            Form::Offset | Form::Complex => Ok(self.n_components),
        }
    }

    /// The projection that will be used in dimension `input_dim`.
    ///
    /// # Errors
    /// Parameters out of range, and structured projections for the Laplacian kernel of norm 1, whose frequencies have
    /// independent coordinates and no direction to speak of, and for frequencies that touch a few columns only.
    pub fn directions(&self, input_dim: usize) -> Result<Directions> {
        let count = self.frequencies()?;
        if self.order.is_some() && matches!(self.projection, Directions::Orthogonal | Directions::Sorf) {
            return Err(Error::Unsupported {
                what: "projection",
                reason: "frequencies that touch `order` columns are drawn one by one; use \"gaussian\" or \"auto\""
                    .into(),
            });
        }
        if self.order.is_some() {
            return Ok(Directions::Gaussian);
        }
        if !self.coordinatewise() {
            return Ok(self.projection.choose(input_dim, count));
        }
        match self.projection {
            Directions::Auto | Directions::Gaussian => Ok(Directions::Gaussian),
            Directions::Orthogonal | Directions::Sorf => Err(Error::Unsupported {
                what: "projection",
                reason: "the Laplacian kernel of norm 1 has frequencies with independent Cauchy coordinates; \
                         use \"gaussian\" or \"auto\", which draw them one by one"
                    .into(),
            }),
        }
    }

    /// Whether coordinates of a frequency are independent, so that it is not a direction times a radius.
    fn coordinatewise(&self) -> bool {
        self.kernel == FourierKernel::Laplacian && self.norm == 1
    }

    /// The kernel with length scale `scale`.
    fn kernel_at(&self, scale: f64) -> Result<Arc<dyn Kernel>> {
        if let Some(order) = self.order {
            return match self.kernel {
                FourierKernel::Gaussian => Ok(Arc::new(LowOrder::new(scale, order)?)),
                FourierKernel::Laplacian if self.norm == 1 => Ok(Arc::new(LowOrderLaplacian::new(scale, order)?)),
                FourierKernel::Laplacian | FourierKernel::Matern => Err(Error::Unsupported {
                    what: "order",
                    reason: "the mean over subsets of columns is known for kernels that are products over columns: the \
                             Gaussian kernel, and the Laplacian kernel with norm 1; take one of them, or leave order out"
                        .into(),
                }),
            };
        }
        Ok(match self.kernel {
            FourierKernel::Gaussian => Arc::new(Gaussian::new(scale)?),
            FourierKernel::Laplacian => Arc::new(Laplacian::new(scale, self.norm)?),
            FourierKernel::Matern => Arc::new(Matern::new(self.nu, scale)?),
        })
    }

    /// Smoothness of the mixture of Gaussians whose radii are drawn; `None` for the Gaussian kernel.
    fn smoothness(&self) -> Option<f64> {
        match self.kernel {
            FourierKernel::Gaussian => None,
            FourierKernel::Laplacian => (self.norm == 2).then_some(0.5),
            FourierKernel::Matern => Some(self.nu),
        }
    }

    fn scaled<R: Real, P: Projection<Real = R, Output = R>>(&self, projection: P) -> Result<Frequencies<P>> {
        let count = projection.output_dim();
        let mut frequencies = Frequencies::new(projection).with_length_scale(self.length_scale.clone())?;
        if let Some(nu) = self.smoothness() {
            frequencies = frequencies.with_radii(matern_radii(nu, Seed::new(self.seed).child(RADII), count)?)?;
        }
        Ok(frequencies)
    }

    fn finish<R: Real, P: Projection<Real = R, Output = R> + 'static>(&self, projection: P) -> Result<DynMap<R>> {
        let frequencies = self.scaled(projection)?;
        Ok(match self.form {
            Form::CosSin => Arc::new(Fourier::cos_sin(frequencies)),
            Form::Offset => Arc::new(Fourier::offset(frequencies, Seed::new(self.seed))),
            Form::Complex => Arc::new(ComplexToReal::new(ComplexFourier::new(frequencies))),
        })
    }

    fn finish_complex<R: Real, P: Projection<Real = R, Output = R> + 'static>(
        &self,
        projection: P,
    ) -> Result<DynComplexMap<R>> {
        Ok(Arc::new(ComplexFourier::new(self.scaled(projection)?)))
    }

    fn variance_with(
        &self,
        x: ArrayView2<'_, f64>,
        y: ArrayView2<'_, f64>,
        extra: impl Fn(f64) -> f64,
    ) -> Result<Array2<f64>> {
        let m = self.frequencies()? as f64;
        let (x, y) = (self.length_scale.divide(x)?, self.length_scale.divide(y)?);
        let [mut k, double] = at_multiples(&*self.kernel_at(1.0)?, [1.0, 2.0], x.view(), y.view())?;
        // `build` gives the complex form as pairs, but its variance is asked for as that of complex features.
        Zip::from(&mut k).and(&double).for_each(|k, &k_double| {
            *k = (fourier(self.form, *k, k_double) / m + extra(*k)).max(0.0);
        });
        Ok(k)
    }
}

/// `√(2ν/χ²)`, `χ²` with `2ν` degrees of freedom, for each of `count` frequencies.
fn matern_radii(nu: f64, seed: Seed, count: usize) -> Result<Vec<f64>> {
    check_positive("nu", nu)?;
    let radius = |j| {
        let chi_square = Stream::new(seed, Role::Radius, j as u64).chi_square(2.0 * nu);
        // For very small ν some draws underflow: such frequencies are too fast for any data and stay finite here.
        (2.0 * nu / chi_square.max(f64::MIN_POSITIVE)).sqrt()
    };
    Ok((0..count).map(radius).collect())
}

macro_rules! with_projection {
    ($spec:expr, $input_dim:expr, $finish:ident) => {{
        let (spec, d) = ($spec, $input_dim);
        let (seed, m) = (Seed::new(spec.seed), spec.frequencies()?);
        spec.length_scale.check(d)?;
        match (spec.directions(d)?, spec.order) {
            (_, Some(order)) if spec.coordinatewise() => {
                spec.$finish(Sparse::<R>::drawn(seed, d, m, order, Stream::cauchy)?)
            }
            // Not at unit scale: a frequency has the entries that it would have with all columns, and no others.
            (_, Some(order)) => spec.$finish(Sparse::<R>::drawn(seed, d, m, order, Stream::normal)?),
            _ if spec.coordinatewise() => spec.$finish(Given::<R>::given(d, m, |j, direction| {
                let mut draw = Stream::new(seed, Role::Direction, j as u64);
                direction.fill_with(|| draw.cauchy());
            })?),
            (Directions::Sorf, _) => spec.$finish(HadamardChain::<R>::new(seed, d, m)?),
            (Directions::Orthogonal, _) => spec.$finish(Orthogonal::<R>::new(seed, d, m)?),
            (Directions::Gaussian | Directions::Auto, _) => {
                spec.$finish(projection::DenseGaussian::<R>::new(seed, d, m)?)
            }
        }
    }};
}

impl FourierSpec {
    fn vectors<R: Real, P: Projection<Real = R, Output = R>>(&self, projection: P) -> Result<Array2<f64>> {
        Ok(self.scaled(projection)?.vectors())
    }

    fn draw_vectors<R: Real>(&self, input_dim: usize) -> Result<Array2<f64>> {
        self.kernel_at(1.0)?;
        with_projection!(self, input_dim, vectors)
    }

    /// The frequencies of the map for rows of length `input_dim`, one row each.
    ///
    /// # Errors
    /// Parameters out of range, named.
    pub fn frequency_vectors(&self, input_dim: usize) -> Result<Array2<f64>> {
        self.draw_vectors::<f64>(input_dim)
    }
}

impl FourierSpec {
    /// Ways to draw the frequencies of the kernel.
    pub(crate) fn ways(&self) -> &'static [(&'static str, Directions)] {
        match (self.order, self.coordinatewise()) {
            (Some(_), _) => &[("Fourier, low order", Directions::Gaussian)],
            (None, true) => &[("Fourier", Directions::Gaussian)],
            (None, false) => &[
                ("Fourier, dense", Directions::Gaussian),
                ("Fourier, orthogonal", Directions::Orthogonal),
                ("Fourier, SORF", Directions::Sorf),
            ],
        }
    }
}

impl Describe for FourierSpec {
    fn candidates(kernel: &AnyKernel, _rows: ArrayView2<'_, f64>) -> Result<Vec<Candidate>> {
        let spec = FourierSpec::default();
        let base = match kernel {
            AnyKernel::Gaussian(k) => FourierSpec { length_scale: k.length_scale().into(), ..spec },
            AnyKernel::Matern(k) => {
                let length_scale = k.length_scale().into();
                FourierSpec { kernel: FourierKernel::Matern, nu: k.nu(), length_scale, ..spec }
            }
            AnyKernel::Laplacian(k) => {
                let length_scale = k.length_scale().into();
                FourierSpec { kernel: FourierKernel::Laplacian, norm: k.norm(), length_scale, ..spec }
            }
            AnyKernel::LowOrder(k) => {
                let length_scale = k.length_scale().into();
                FourierSpec { order: Some(k.order()), length_scale, ..spec }
            }
            _ => return Ok(Vec::new()),
        };
        let named = |&(name, projection): &_| Candidate::new(name, FourierSpec { projection, ..base.clone() });
        Ok(base.ways().iter().map(named).collect())
    }

    fn resolve(&self, sample: ArrayView2<'_, f64>) -> Result<Self> {
        let length_scale = self.length_scale.resolve(sample, Seed::new(self.seed))?;
        Ok(FourierSpec { length_scale, ..self.settle(sample.ncols())? })
    }

    fn settle(&self, input_dim: usize) -> Result<Self> {
        Ok(FourierSpec { projection: self.directions(input_dim)?, ..self.clone() })
    }

    fn draw_cost(&self, input_dim: usize) -> DrawCost {
        let count = self.n_components;
        let of_features = DrawCost::listed(count);
        of_features.and(match self.directions(input_dim) {
            Ok(_) if self.order.is_some() => {
                let entries = 2 * self.order.unwrap_or(0).min(input_dim);
                DrawCost::stored(self.frequencies().unwrap_or(count), entries)
            }
            Ok(directions) => directions.draw_cost(self.frequencies().unwrap_or(count), input_dim),
            // The draw says what is wrong.
            Err(_) => DrawCost::default(),
        })
    }

    fn draw<R: Real>(&self, input_dim: usize) -> Result<DynMap<R>> {
        self.kernel_at(1.0)?;
        with_projection!(self, input_dim, finish)
    }

    fn draw_complex<R: Real>(&self, input_dim: usize) -> Result<DynComplexMap<R>> {
        if self.form != Form::Complex {
            let reason = "this form is real; complex features need form \"complex\"".into();
            return Err(Error::Unsupported { what: "complex output", reason });
        }
        self.kernel_at(1.0)?;
        with_projection!(self, input_dim, finish_complex)
    }

    fn kernel(&self) -> Result<Arc<dyn Kernel>> {
        Scaled::by(&self.length_scale, |scale| self.kernel_at(scale))
    }

    /// Variance of the estimate; of complex features for the complex form (its real parts have the variance of pairs).
    ///
    /// Closed forms exist for independent frequencies of every kernel, and for orthogonal ones of the Gaussian kernel.
    fn variance(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        let (dim, m) = (x.ncols(), self.frequencies()?);
        let what = "variance";
        match (self.directions(dim)?, self.kernel) {
            (Directions::Gaussian | Directions::Auto, _) => self.variance_iid(x, y),
            (Directions::Orthogonal, FourierKernel::Gaussian) => {
                self.variance_with(x, y, |k| fourier_orthogonal(dim, k, m))
            }
            (Directions::Orthogonal, _) => Err(Error::Unsupported {
                what,
                reason: "orthogonal frequencies have a closed form for the Gaussian kernel only; that of independent \
                         frequencies (variance_iid, or projection \"gaussian\") is the figure to compare with"
                    .into(),
            }),
            (Directions::Sorf, _) => Err(Error::Unsupported {
                what,
                reason:
                    "Hadamard chains have no closed form, and a bias of about 1/d'; that of independent frequencies \
                         (variance_iid, or projection \"gaussian\") is the figure to compare with"
                        .into(),
            }),
        }
    }

    fn variance_iid(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        self.variance_with(x, y, |_| 0.0)
    }

    /// Hadamard chains behave like uniformly random orthogonal directions in the padded dimension, all of the same length
    /// ([`EqualLengths`]), times the radii of the kernel ([`MixedLengths`]).
    fn prediction(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Prediction> {
        if self.directions(x.ncols())? != Directions::Sorf {
            let (variance, closed_form) = self.known_variance(x, y)?;
            return Ok(Prediction { bias: None, variance, closed_form });
        }
        Directions::check_chain(x.ncols())?;
        let (padded, m) = (x.ncols().next_power_of_two(), self.frequencies()?);
        // Distances, from the kernel that tells them best.
        let gaussian = FourierSpec { kernel: FourierKernel::Gaussian, ..self.clone() };
        let mut distances = kernel_matrix(&*gaussian.kernel()?, x, y)?;
        distances.mapv_inplace(|k| (-2.0 * k.max(f64::MIN_POSITIVE).ln()).max(0.0).sqrt());
        let mut variance = distances.clone();
        let mut bias = kernel_matrix(&*self.kernel()?, x, y)?;
        match self.smoothness() {
            None => {
                let mean = EqualLengths::new(padded);
                Zip::from(&mut bias).and(&distances).for_each(|bias, &t| *bias = mean.value(t) - *bias);
                variance.mapv_inplace(|t| mean.variance(self.form, padded, t, m));
            }
            Some(nu) => {
                let mean = MixedLengths::new(padded, nu);
                Zip::from(&mut bias).and(&distances).for_each(|bias, &t| *bias = mean.value(t) - *bias);
                variance.mapv_inplace(|t| mean.variance(self.form, t, m));
            }
        }
        Ok(Prediction { bias: Some(bias), variance, closed_form: false })
    }
}
