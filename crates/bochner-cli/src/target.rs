//! What `compare` and `plan` share: a kernel named on the command line, and a prepared sample of a file's rows.

use crate::failure::{Failure, Outcome};
use crate::human;
use crate::source::{Columns, Text};
use bochner::kernel::{Any, Exponential, Gaussian, Laplacian, Matern, Optical, Polynomial};
use bochner::preprocess::{Centre, ColumnStatistics, ShiftNonNegative, Standardize, UnitNorm, median_distance};
use bochner::random::{Role, Seed, Stream};
use bochner::rows::RowSource;
use ndarray::{Array2, ArrayView2};
use std::path::PathBuf;

/// Rows from which the median distance is computed.
const MEDIAN_ROWS: usize = 2000;

/// The kernel.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct KernelArgs {
    /// The kernel
    #[arg(long, value_enum, default_value = "gaussian")]
    pub(crate) kernel: KernelName,
    /// Degree of the polynomial kernel (gamma x.y + coef0)^degree
    #[arg(long, default_value_t = 3)]
    degree: u32,
    /// Factor of the inner product in the polynomial kernel
    #[arg(long, default_value_t = 1.0)]
    gamma: f64,
    /// Constant of the polynomial kernel
    #[arg(long, default_value_t = 1.0)]
    coef0: f64,
    /// Length scale of the other kernels [default: the median distance of two rows; 1 for exponential]
    #[arg(long)]
    length_scale: Option<f64>,
    /// Smoothness of the Matern kernel
    #[arg(long, default_value_t = 1.5)]
    nu: f64,
    /// Norm of the Laplacian kernel, 1 or 2
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=2))]
    norm: u8,
    /// Exponent m of the optical kernel, the limit of |Ux|^m
    #[arg(long, default_value_t = 2.0)]
    exponent: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum KernelName {
    Gaussian,
    Laplacian,
    Matern,
    Exponential,
    Polynomial,
    Optical,
}

impl KernelArgs {
    /// The kernel, with a length scale from the rows where none was given.
    pub(crate) fn resolve(&self, rows: ArrayView2<'_, f64>, seed: Seed) -> Outcome<Any> {
        let scale = || match self.length_scale {
            Some(scale) => Ok(scale),
            None => median_distance(rows, seed, MEDIAN_ROWS),
        };
        Ok(match self.kernel {
            KernelName::Gaussian => Gaussian::new(scale()?)?.into(),
            KernelName::Laplacian => Laplacian::new(scale()?, self.norm)?.into(),
            KernelName::Matern => Matern::new(self.nu, scale()?)?.into(),
            KernelName::Exponential => Exponential::new(self.length_scale.unwrap_or(1.0))?.into(),
            KernelName::Polynomial => Polynomial::new(self.degree, self.gamma, self.coef0)?.into(),
            KernelName::Optical => Optical::new(self.exponent, 0.0)?.into(),
        })
    }

    /// What is done to rows where nothing was asked for: shift-invariant kernels see centred rows, the others unit ones.
    fn preparation(&self) -> Preparation {
        match self.kernel {
            KernelName::Gaussian | KernelName::Laplacian | KernelName::Matern => Preparation::Centre,
            KernelName::Exponential | KernelName::Polynomial | KernelName::Optical => Preparation::Unit,
        }
    }
}

/// A kernel as a title says it.
pub(crate) fn title(kernel: &Any) -> String {
    let number = |v: f64| human::significant(v, 4);
    match kernel {
        Any::Gaussian(k) => format!("Gaussian kernel, length scale {}", number(k.length_scale())),
        Any::Laplacian(k) => {
            format!("Laplacian kernel of norm {}, length scale {}", k.norm(), number(k.length_scale()))
        }
        Any::Matern(k) => {
            format!("Matérn kernel, nu {}, length scale {}", number(k.nu()), number(k.length_scale()))
        }
        Any::Exponential(k) => format!("kernel exp(x·y/{}²)", number(k.length_scale())),
        Any::Polynomial(k) => {
            // Round numbers as they were given: (x·y + 1)^3, not (1.000 x·y + 1.000)^3.
            let short = |v: f64| Some(v.to_string()).filter(|text| text.len() <= 6).unwrap_or_else(|| number(v));
            let gamma = if k.gamma() == 1.0 { String::new() } else { format!("{} ", short(k.gamma())) };
            format!("kernel ({gamma}x·y + {})^{}", short(k.coef0()), k.degree())
        }
        Any::Optical(k) => format!("optical kernel, m = {}", number(k.exponent())),
        _ => "kernel".into(),
    }
}

/// What tables of maps do not say: by which constant some of them are off, if any is.
pub(crate) fn scaled(mut factors: impl Iterator<Item = f64>) -> String {
    factors.find(|factor| *factor != 1.0).map_or(String::new(), |factor| {
        format!(
            "Spherical features estimate the kernel over {}; a penalty absorbs it.\n",
            human::significant(factor, 4)
        )
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Preparation {
    /// Nothing
    None,
    /// Subtract the mean of every column
    Centre,
    /// Subtract the mean of every column and divide by its standard deviation
    Standardize,
    /// Scale every row to length one
    Unit,
    /// Shift every column to begin at zero, then scale every row to length one
    NonNegative,
}

/// The rows.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SampleArgs {
    /// A CSV, TSV, NPY, NPZ, IDX, LIBSVM or Parquet file, plain or gzip; - for standard input
    data: PathBuf,
    /// The column a model would predict, left out like those of --drop
    #[arg(long, value_delimiter = ',', value_name = "COLUMN")]
    target: Vec<String>,
    /// What is done to the rows first [default: centre for gaussian, laplacian, matern; unit for the others]
    #[arg(long, value_enum)]
    preprocess: Option<Preparation>,
    /// Rows in the sample
    #[arg(long, default_value_t = 1000, value_parser = human::parse_count)]
    rows: usize,
    #[command(flatten)]
    columns: Columns,
    #[command(flatten)]
    text: Text,
}

/// Rows of a sample and the number of rows in the file.
pub(crate) struct Sampled {
    pub(crate) rows: Array2<f64>,
    pub(crate) total: usize,
    /// Whether columns have names, and with them meanings of their own.
    pub(crate) table: bool,
}

impl SampleArgs {
    /// A sample prepared as was asked for, or as suits the kernel.
    pub(crate) fn read(&self, kernel: &KernelArgs, seed: Seed) -> Outcome<Sampled> {
        self.prepared(kernel.preparation(), seed)
    }

    /// A sample prepared as was asked for, or else like this.
    pub(crate) fn prepared(&self, otherwise: Preparation, seed: Seed) -> Outcome<Sampled> {
        let mut sampled = self.reservoir(seed)?;
        let rows = &mut sampled.rows;
        let mut seen = ColumnStatistics::new(rows.ncols());
        seen.push(rows.view())?;
        match self.preprocess.unwrap_or(otherwise) {
            Preparation::None => {}
            Preparation::Centre => Centre::fit(&seen)?.apply(rows.view_mut())?,
            Preparation::Standardize => Standardize::fit(&seen)?.apply(rows.view_mut())?,
            Preparation::Unit => UnitNorm::default().apply(rows.view_mut()),
            Preparation::NonNegative => {
                ShiftNonNegative::fit(&seen)?.apply(rows.view_mut())?;
                UnitNorm::default().apply(rows.view_mut());
            }
        }
        Ok(sampled)
    }

    /// A uniform sample of the file's rows, without keeping more of them than asked for (reservoir sampling).
    fn reservoir(&self, seed: Seed) -> Outcome<Sampled> {
        let data = self.columns.open(&self.data, None, &self.target, &self.text)?;
        let dim = data.schema().input_dim();
        let mut kept: Vec<f64> = Vec::new();
        let mut draw = Stream::new(seed, Role::Split, 0);
        let mut total = 0;
        data.rows::<f64>().for_each_block(&mut |block| {
            for row in block.rows.rows() {
                if total < self.rows {
                    kept.extend(row);
                } else {
                    let place = draw.below(total as u64 + 1) as usize;
                    if place < self.rows {
                        kept[place * dim..][..dim].iter_mut().zip(row).for_each(|(k, v)| *k = *v);
                    }
                }
                total += 1;
            }
            Ok(())
        })?;
        let rows = total.min(self.rows);
        if rows < 2 || dim == 0 {
            let found = format!("{rows} rows of {dim} columns");
            let name = &data.input().name;
            return Err(Failure::Failed(format!("{name}: a sample needs at least 2 rows and 1 column, found {found}")));
        }
        let rows = Array2::from_shape_vec((rows, dim), kept).map_err(|e| Failure::Failed(e.to_string()))?;
        Ok(Sampled { rows, total, table: data.is_table() })
    }
}
