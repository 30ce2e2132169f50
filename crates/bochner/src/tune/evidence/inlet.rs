//! How hyperparameters of a map act on its rows: the map is drawn once, at unit scale, and rows move.

use super::Scales;
use crate::error::{Error, Result};
use crate::feature::{CompressiveSpec, FeatureMap, FourierSpec, MaclaurinKernel, PositiveSpec, Spec};
use crate::kernel::{self, AnyKernel};
use crate::parameter::{Entry, Parameter, Purpose, Value};
use crate::preprocess::LengthScale;
use ndarray::{Array2, ArrayView2, s};

/// Logarithms of hyperparameters move by this much to either side of where they began: a factor of a million.
const RANGE: f64 = 13.8;

/// A map at unit scale, and what is done to rows before they meet it.
#[derive(Debug, Clone)]
pub(crate) struct Inlet {
    given: Of,
    unit: Of,
    inputs: usize,
    centre: Option<Vec<f64>>,
    /// What divides rows before anything is searched for.
    start: LengthScale,
    scales: Scales,
    gamma: Option<Gamma>,
    /// A coordinate that is appended to all rows: the name of its square, and the square.
    constant: Option<(&'static str, f64)>,
}

/// What hyperparameters belong to.
#[derive(Debug, Clone)]
enum Of {
    Map(Spec),
    Kernel(AnyKernel),
}

/// Rows are multiplied by `√(γ/base)`.
#[derive(Debug, Clone, Copy)]
struct Gamma {
    start: f64,
    base: f64,
}

impl Inlet {
    /// The inlet of a resolved description for rows of so many columns.
    pub(crate) fn new(spec: &Spec, inputs: usize, scales: Scales) -> Result<Self> {
        let mut inlet = Inlet::of(Of::Map(spec.clone()), inputs);
        let mut unit = spec.clone();
        let has_scales = match &mut unit {
            Spec::Fourier(FourierSpec { length_scale, .. })
            | Spec::Positive(PositiveSpec { length_scale, .. })
            | Spec::Compressive(CompressiveSpec { length_scale, .. }) => {
                inlet.start = std::mem::replace(length_scale, 1.0.into());
                true
            }
            Spec::Maclaurin(unit) => match unit.kernel {
                MaclaurinKernel::Gaussian | MaclaurinKernel::Exponential => {
                    inlet.start = std::mem::replace(&mut unit.length_scale, 1.0.into());
                    inlet.centre = unit.resolved.as_mut().and_then(|resolved| resolved.centre.take());
                    unit.center = false;
                    true
                }
                MaclaurinKernel::Polynomial => {
                    // Without a constant gamma and the signal are the same.
                    if unit.coef0 > 0.0 && unit.gamma > 0.0 && unit.degree > 0 {
                        inlet.gamma = Some(Gamma { start: unit.gamma, base: unit.gamma });
                    }
                    false
                }
                MaclaurinKernel::Coefficients(_) => false,
            },
            Spec::Polynomial(unit) => {
                if unit.coef0 > 0.0 && unit.gamma > 0.0 && unit.degree > 0 {
                    inlet.gamma = Some(Gamma { start: unit.gamma, base: 1.0 });
                    inlet.constant = Some(("coef0", unit.coef0));
                    (unit.gamma, unit.coef0) = (1.0, 0.0);
                }
                false
            }
            Spec::Optical(unit) => {
                let plain = unit.binarize.is_none() && unit.encoding.is_none();
                if unit.bias > 0.0 && plain && unit.camera_bits.is_none() && unit.noise == 0.0 {
                    inlet.constant = Some(("bias", unit.bias));
                    unit.bias = 0.0;
                }
                false
            }
            _ => false,
        };
        inlet.unit = Of::Map(unit);
        let title = spec.entry().title;
        inlet.moving(has_scales, scales, title)
    }

    fn of(given: Of, inputs: usize) -> Inlet {
        let start = LengthScale::Same(1.0);
        Inlet {
            unit: given.clone(),
            given,
            inputs,
            centre: None,
            start,
            scales: Scales::Fixed,
            gamma: None,
            constant: None,
        }
    }

    /// The inlet of a kernel of rows that `length_scale` divides.
    pub(crate) fn of_kernel(
        kernel: &AnyKernel,
        inputs: usize,
        length_scale: &LengthScale,
        scales: Scales,
    ) -> Result<Self> {
        length_scale.check(inputs)?;
        let mut inlet = Inlet::of(Of::Kernel(kernel.clone()), inputs);
        let mut has_scales = false;
        let mut unit = kernel.clone();
        inlet.start = length_scale.clone();
        if let Some(scale) = length_scale_of(kernel) {
            unit = at_scale(kernel, 1.0)?;
            inlet.start = times(length_scale, scale);
            has_scales = true;
        }
        match kernel {
            AnyKernel::Polynomial(k) if k.coef0() > 0.0 && k.gamma() > 0.0 && k.degree() > 0 => {
                inlet.gamma = Some(Gamma { start: k.gamma(), base: 1.0 });
                inlet.constant = Some(("coef0", k.coef0()));
                unit = kernel::Polynomial::homogeneous(k.degree()).into();
            }
            AnyKernel::Optical(k) if k.bias() > 0.0 => {
                inlet.constant = Some(("bias", k.bias()));
                unit = kernel::Optical::new(k.exponent(), 0.0)?.into();
            }
            _ => {}
        }
        inlet.unit = Of::Kernel(unit);
        inlet.moving(has_scales, scales, kernel.entry().title)
    }

    /// With the scales that move, where there are some.
    fn moving(self, has_scales: bool, scales: Scales, title: &str) -> Result<Self> {
        let mut inlet = self;
        inlet.start.check(inlet.inputs)?;
        inlet.scales = match (has_scales, scales) {
            (_, Scales::Fixed) | (false, Scales::Common) => Scales::Fixed,
            (true, scales) => scales,
            (false, _) => {
                let reason = format!("{title}: no length scales; use length_scales=\"common\"");
                return Err(Error::Unsupported { what: "length_scales", reason });
            }
        };
        if scales == Scales::Fixed {
            // A search that keeps what acts on rows keeps all of it.
            if let Of::Map(spec) = &inlet.given {
                return Ok(Inlet::of(Of::Map(spec.clone()), inlet.inputs));
            }
            (inlet.gamma, inlet.constant) = (None, None);
            if length_scale_of(inlet.given_kernel()?).is_none() {
                inlet.unit = inlet.given.clone();
            }
        }
        Ok(inlet)
    }

    /// The map that is drawn.
    ///
    /// # Errors
    /// The inlet of a kernel.
    pub(crate) fn unit(&self) -> Result<&Spec> {
        match &self.unit {
            Of::Map(spec) => Ok(spec),
            Of::Kernel(_) => Err(Error::parameter("features", "a map", "a kernel")),
        }
    }

    /// The kernel at unit scale.
    ///
    /// # Errors
    /// The inlet of a map.
    pub(crate) fn unit_kernel(&self) -> Result<&AnyKernel> {
        match &self.unit {
            Of::Kernel(kernel) => Ok(kernel),
            Of::Map(_) => Err(Error::parameter("kernel", "a kernel", "a map")),
        }
    }

    fn given_kernel(&self) -> Result<&AnyKernel> {
        match &self.given {
            Of::Kernel(kernel) => Ok(kernel),
            Of::Map(_) => Err(Error::parameter("kernel", "a kernel", "a map")),
        }
    }

    /// Length of the rows that the map sees.
    pub(crate) fn unit_dim(&self) -> usize {
        self.inputs + usize::from(self.constant.is_some())
    }

    fn scale_count(&self) -> usize {
        match self.scales {
            Scales::Fixed => 0,
            Scales::Common => 1,
            Scales::PerInput => self.inputs,
            Scales::Metric => self.inputs * self.inputs,
        }
    }

    pub(crate) fn scales(&self) -> Scales {
        self.scales
    }

    /// Number of hyperparameters that act on rows.
    pub(crate) fn free(&self) -> usize {
        self.scale_count() + usize::from(self.gamma.is_some()) + usize::from(self.constant.is_some())
    }

    /// Their values in the description: logarithms, or entries of a metric.
    pub(crate) fn start(&self) -> Vec<f64> {
        let mut point = vec![0.0; self.scale_count()];
        if self.scales == Scales::Metric {
            point.iter_mut().step_by(self.inputs + 1).for_each(|v| *v = 1.0);
        }
        point.extend(self.gamma.map(|gamma| gamma.start.ln()));
        point.extend(self.constant.map(|(_, value)| value.ln()));
        point
    }

    /// The same with all inputs divided further, each by its number.
    pub(crate) fn with_scales(&self, scales: &[f64]) -> Vec<f64> {
        let mut point = self.start();
        match self.scales {
            Scales::Fixed => {}
            Scales::Common => {
                point[0] = scales.iter().map(|scale| scale.ln()).sum::<f64>() / scales.len().max(1) as f64;
            }
            Scales::PerInput => point.iter_mut().zip(scales).for_each(|(p, scale)| *p = scale.ln()),
            Scales::Metric => {
                point.iter_mut().step_by(self.inputs + 1).zip(scales).for_each(|(p, scale)| *p = 1.0 / scale);
            }
        }
        point
    }

    /// The same with another gamma, where there is one, and another constant, where there is one.
    pub(crate) fn with_others(&self, gamma: Option<f64>, constant: Option<f64>) -> Vec<f64> {
        let (mut point, at) = (self.start(), self.scale_count());
        if let (Some(_), Some(gamma)) = (self.gamma, gamma) {
            point[at] = gamma.ln();
        }
        if let (Some(_), Some(constant)) = (self.constant, constant) {
            let last = point.len() - 1;
            point[last] = constant.ln();
        }
        point
    }

    pub(crate) fn has_gamma(&self) -> bool {
        self.gamma.is_some()
    }

    pub(crate) fn has_constant(&self) -> bool {
        self.constant.is_some()
    }

    /// Least and greatest values.
    pub(crate) fn bounds(&self) -> Vec<(f64, f64)> {
        let scales = self.scale_count();
        let bound = |(i, start): (usize, f64)| match self.scales {
            Scales::Metric if i < scales => (-RANGE.exp(), RANGE.exp()),
            _ => (start - RANGE, start + RANGE),
        };
        self.start().into_iter().enumerate().map(bound).collect()
    }

    /// Rows before anything is searched for.
    pub(crate) fn base(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        match &self.centre {
            Some(centre) => self.start.divide((&rows - &ndarray::aview1(centre)).view()),
            None => self.start.divide(rows),
        }
    }

    /// Rows as the unit map sees them.
    pub(crate) fn rows(&self, base: &Array2<f64>, point: &[f64]) -> Array2<f64> {
        let (n, d) = (base.nrows(), self.inputs);
        let (scales, others) = point.split_at(self.scale_count());
        let mut others = others.iter();
        let factor =
            self.gamma.map_or(1.0, |gamma| (0.5 * others.next().copied().unwrap_or(0.0)).exp() / gamma.base.sqrt());
        let mut out = Array2::zeros((n, self.unit_dim()));
        let mut own = out.slice_mut(s![.., ..d]);
        match self.scales {
            Scales::Fixed => own.assign(base),
            Scales::Common => own.assign(&(base * (-scales[0]).exp())),
            Scales::PerInput => {
                let factors: Vec<f64> = scales.iter().map(|log| (-log).exp()).collect();
                own.assign(&(base * &ndarray::aview1(&factors)));
            }
            Scales::Metric => {
                let metric = ArrayView2::from_shape((d, d), scales).expect("a square of numbers");
                own.assign(&base.dot(&metric.t()));
            }
        }
        if factor != 1.0 {
            own.mapv_inplace(|v| v * factor);
        }
        if self.constant.is_some() {
            out.column_mut(d).fill((0.5 * others.next().copied().unwrap_or(0.0)).exp());
        }
        out
    }

    /// The gradient in all of them, from the pullback to the rows that the map saw.
    pub(crate) fn gradient(&self, base: &Array2<f64>, moved: &Array2<f64>, pulled: &Array2<f64>) -> Vec<f64> {
        let d = self.inputs;
        let column = |j: usize| -> f64 { pulled.column(j).iter().zip(moved.column(j)).map(|(p, x)| p * x).sum() };
        let mut gradient = match self.scales {
            Scales::Fixed => Vec::new(),
            Scales::Common => vec![-(0..d).map(column).sum::<f64>()],
            Scales::PerInput => (0..d).map(|j| -column(j)).collect(),
            Scales::Metric => pulled.slice(s![.., ..d]).t().dot(base).into_iter().collect(),
        };
        if self.gamma.is_some() {
            gradient.push(0.5 * (0..d).map(column).sum::<f64>());
        }
        if self.constant.is_some() {
            gradient.push(0.5 * column(d));
        }
        gradient
    }

    /// The pullback as a gradient in rows of the base: what a start of per-input scales is made from.
    pub(crate) fn to_base(&self, pulled: &Array2<f64>, point: &[f64]) -> Array2<f64> {
        let d = self.inputs;
        let own = pulled.slice(s![.., ..d]);
        match self.scales {
            Scales::Fixed => own.to_owned(),
            Scales::Common => &own * (-point[0]).exp(),
            Scales::PerInput => {
                let factors: Vec<f64> = point[..d].iter().map(|log| (-log).exp()).collect();
                &own * &ndarray::aview1(&factors)
            }
            Scales::Metric => own.dot(&ArrayView2::from_shape((d, d), &point[..d * d]).expect("a square of numbers")),
        }
    }

    /// What divides rows at a point, all in all.
    pub(crate) fn length_scale(&self, point: &[f64]) -> LengthScale {
        let d = self.inputs;
        let metric = |left: &dyn Fn(usize, usize) -> f64| {
            let entry = |i: usize, j: usize| match &self.start {
                LengthScale::Same(scale) => left(i, j) / scale,
                LengthScale::PerInput(scales) => left(i, j) / scales[j],
                LengthScale::Metric(matrix) => (0..d).map(|k| left(i, k) * matrix[k][j]).sum(),
                LengthScale::Median => f64::NAN,
            };
            LengthScale::Metric((0..d).map(|i| (0..d).map(|j| entry(i, j)).collect()).collect())
        };
        match (self.scales, &self.start) {
            (Scales::Fixed, start) => start.clone(),
            (Scales::Common, LengthScale::Same(scale)) => LengthScale::Same(scale * point[0].exp()),
            (Scales::Common, LengthScale::PerInput(scales)) => {
                LengthScale::PerInput(scales.iter().map(|scale| scale * point[0].exp()).collect())
            }
            (Scales::PerInput, LengthScale::Same(scale)) => {
                LengthScale::PerInput(point[..d].iter().map(|log| scale * log.exp()).collect())
            }
            (Scales::PerInput, LengthScale::PerInput(scales)) => {
                LengthScale::PerInput(point.iter().zip(scales).map(|(log, scale)| scale * log.exp()).collect())
            }
            (Scales::Metric, _) => metric(&|i, j| point[i * d + j]),
            (Scales::Common, _) => metric(&|i, j| if i == j { (-point[0]).exp() } else { 0.0 }),
            (Scales::PerInput, _) => metric(&|i, j| if i == j { (-point[i]).exp() } else { 0.0 }),
        }
    }

    /// A description with what was found in its place.
    pub(crate) fn put(&self, spec: &Spec, point: &[f64]) -> Result<Spec> {
        let mut spec = spec.clone();
        let mut others = point[self.scale_count()..].iter();
        let gamma = self.gamma.and_then(|_| others.next()).map(|log| log.exp());
        let constant = self.constant.and_then(|_| others.next()).map(|log| log.exp());
        match &mut spec {
            _ if self.free() == 0 => {}
            Spec::Fourier(FourierSpec { length_scale, .. })
            | Spec::Positive(PositiveSpec { length_scale, .. })
            | Spec::Compressive(CompressiveSpec { length_scale, .. }) => *length_scale = self.length_scale(point),
            Spec::Maclaurin(spec) => {
                if self.scales != Scales::Fixed {
                    spec.length_scale = self.length_scale(point);
                }
                spec.gamma = gamma.unwrap_or(spec.gamma);
            }
            Spec::Polynomial(spec) => {
                spec.gamma = gamma.unwrap_or(spec.gamma);
                spec.coef0 = constant.unwrap_or(spec.coef0);
            }
            Spec::Optical(spec) => spec.bias = constant.unwrap_or(spec.bias),
            _ => {}
        }
        spec.check()?;
        Ok(spec)
    }

    /// The kernel with what was found in its place, and what divides rows before they meet it.
    pub(crate) fn put_kernel(&self, point: &[f64]) -> Result<(AnyKernel, LengthScale)> {
        let given = self.given_kernel()?;
        let mut others = point[self.scale_count()..].iter();
        let gamma = self.gamma.and_then(|_| others.next()).map(|log| log.exp());
        let constant = self.constant.and_then(|_| others.next()).map(|log| log.exp());
        let total = self.length_scale(point);
        Ok(match (given, &total) {
            (AnyKernel::Polynomial(k), _) => {
                let (gamma, coef0) = (gamma.unwrap_or(k.gamma()), constant.unwrap_or(k.coef0()));
                (kernel::Polynomial::new(k.degree(), gamma, coef0)?.into(), total)
            }
            (AnyKernel::Optical(k), _) => {
                (kernel::Optical::new(k.exponent(), constant.unwrap_or(k.bias()))?.into(), total)
            }
            (given, LengthScale::Same(scale)) if length_scale_of(given).is_some() => {
                (at_scale(given, *scale)?, LengthScale::Same(1.0))
            }
            _ => (self.unit_kernel()?.clone(), total),
        })
    }

    /// Names of the parameters of the kernel that are searched for, and of those that stay.
    pub(crate) fn names(&self) -> (Vec<String>, Vec<String>) {
        let moves = |name: &str| match name {
            "length_scale" => self.scales != Scales::Fixed,
            "gamma" => self.gamma.is_some(),
            name => self.constant.is_some_and(|(constant, _)| constant == name),
        };
        let (entry, value): (&Entry, Box<dyn Fn(&str) -> Option<Value>>) = match &self.given {
            Of::Map(spec) => (spec.entry(), Box::new(|name| spec.get(name))),
            Of::Kernel(kernel) => {
                let Value::Parts(parts) = Value::of(kernel) else { return (Vec::new(), Vec::new()) };
                (kernel.entry(), Box::new(move |name| parts.get(name).cloned()))
            }
        };
        let of_kernel =
            |p: &&Parameter| p.purpose == Purpose::Kernel && p.name != "kernel" && p.applies(|name| value(name));
        // What is not given is nothing that could be searched for.
        let given = |p: &&Parameter| value(p.name).is_some_and(|value| value != Value::None);
        let named = entry.parameters.iter().filter(of_kernel).filter(given);
        let (searched, fixed): (Vec<_>, Vec<_>) = named.map(|p| p.name.to_owned()).partition(|name| moves(name));
        (searched, fixed)
    }

    /// Refuses maps without a pullback where one is needed.
    pub(crate) fn check_map<M: FeatureMap + ?Sized>(&self, map: &M) -> Result<()> {
        if self.free() > 0 { map.check_pullback() } else { Ok(()) }
    }
}

/// The length scale of a kernel of distances or inner products of rows, where it has one.
fn length_scale_of(kernel: &AnyKernel) -> Option<f64> {
    match kernel {
        AnyKernel::Gaussian(k) => Some(k.length_scale()),
        AnyKernel::Matern(k) => Some(k.length_scale()),
        // Sums of absolute values have another gradient, which is not here.
        AnyKernel::Laplacian(k) if k.norm() == 2 => Some(k.length_scale()),
        AnyKernel::Exponential(k) => Some(k.length_scale()),
        AnyKernel::Compressive(k) => Some(k.length_scale()),
        _ => None,
    }
}

/// The same kernel with another length scale.
fn at_scale(kernel: &AnyKernel, scale: f64) -> Result<AnyKernel> {
    Ok(match kernel {
        AnyKernel::Gaussian(_) => kernel::Gaussian::new(scale)?.into(),
        AnyKernel::Matern(k) => kernel::Matern::new(k.nu(), scale)?.into(),
        AnyKernel::Laplacian(k) => kernel::Laplacian::new(scale, k.norm())?.into(),
        AnyKernel::Exponential(_) => kernel::Exponential::new(scale)?.into(),
        AnyKernel::Compressive(k) => {
            kernel::Compressive::new(k.compression(), k.input_dim(), k.output_dim(), scale)?.into()
        }
        other => other.clone(),
    })
}

/// Rows divided by both.
fn times(length_scale: &LengthScale, scale: f64) -> LengthScale {
    match length_scale {
        LengthScale::Same(own) => LengthScale::Same(own * scale),
        LengthScale::PerInput(scales) => LengthScale::PerInput(scales.iter().map(|s| s * scale).collect()),
        LengthScale::Metric(matrix) => {
            LengthScale::Metric(matrix.iter().map(|row| row.iter().map(|v| v / scale).collect()).collect())
        }
        LengthScale::Median => LengthScale::Median,
    }
}
