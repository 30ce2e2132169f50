//! The numbers data are made of: [`Real`] (`f32`, `f64`) and [`Scalar`] (those and their complex numbers).
//!
//! Both traits are sealed: kernels are compiled for exactly these four types.
//!
//! ```
//! use bochner::{Complex, scalar::Scalar};
//! assert_eq!(Complex::new(3.0f64, 4.0).abs_sq(), 25.0);
//! assert_eq!((f32::IS_COMPLEX, 2f32.conj()), (false, 2.0));
//! ```

use crate::linalg::{TileMut, Workspace};
use num_complex::Complex;
use std::fmt::{Debug, Display};
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, MulAssign, Neg, Sub, SubAssign};

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
    impl Sealed for num_complex::Complex<f32> {}
    impl Sealed for num_complex::Complex<f64> {}
}

/// A real or complex number: what a feature is made of.
pub trait Scalar:
    sealed::Sealed
    + Copy
    + Debug
    + Display
    + Default
    + PartialEq
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + Sum
    + crate::linalg::field::Field
{
    /// The real numbers underneath.
    type Real: Real;
    /// Whether numbers of this type have an imaginary part.
    const IS_COMPLEX: bool;
    /// The number 0.
    const ZERO: Self;
    /// The number 1.
    const ONE: Self;
    /// `re + i im`; a real type drops `im`.
    fn from_parts(re: Self::Real, im: Self::Real) -> Self;
    /// Real part.
    fn re(self) -> Self::Real;
    /// Imaginary part.
    fn im(self) -> Self::Real;
    /// Complex conjugate.
    #[inline(always)]
    fn conj(self) -> Self {
        Self::from_parts(self.re(), -self.im())
    }
    /// Product with a real number.
    #[inline(always)]
    fn scale(self, factor: Self::Real) -> Self {
        Self::from_parts(self.re() * factor, self.im() * factor)
    }
    /// Lends a buffer of this type from a workspace; its values are unspecified.
    fn lend(work: &mut Workspace<Self::Real>, len: usize) -> Vec<Self>;
    /// Gives a lent buffer back.
    fn give_back(work: &mut Workspace<Self::Real>, buffer: Vec<Self>);
    /// The same window as one of real numbers, where these are real.
    fn as_real(tile: TileMut<'_, Self>) -> Result<TileMut<'_, Self::Real>, TileMut<'_, Self>>;
    /// Squared modulus.
    fn abs_sq(self) -> Self::Real {
        self.re() * self.re() + self.im() * self.im()
    }
}

/// `f32` or `f64`.
pub trait Real:
    Scalar<Real = Self> + num_traits::Float + crate::linalg::Kernels + crate::linalg::field::Field<Wide = f64>
{
    /// Rounds a double once: parameters and draws are `f64`, data are `Self`.
    fn from_f64(value: f64) -> Self;
    /// Widens exactly.
    fn to_f64(self) -> f64;
    /// Its complex numbers: [`Complex<Self>`](Complex), under a name by which generic code knows that they are [`Scalar`]s.
    type Complex: Scalar<Real = Self>;
    /// Name as numpy and model files write it: `f32` or `f64`.
    const NAME: &'static str;
    /// Of two things for the two precisions the one for this.
    #[doc(hidden)]
    fn pick<T: Twin>(single: T::Of<f32>, double: T::Of<f64>) -> T::Of<Self>;
}

/// Something that there is once for each precision, such as a function that is compiled for both.
#[doc(hidden)]
pub trait Twin {
    /// The one for precision `R`.
    type Of<R: Real>;
}

macro_rules! real {
    ($t:ident, ($single:ident, $double:ident) => $own:ident) => {
        impl Scalar for $t {
            type Real = $t;
            const IS_COMPLEX: bool = false;
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            #[inline(always)]
            fn from_parts(re: $t, _im: $t) -> Self {
                re
            }
            #[inline(always)]
            fn re(self) -> $t {
                self
            }
            #[inline(always)]
            fn im(self) -> $t {
                0.0
            }
            fn lend(work: &mut Workspace<$t>, len: usize) -> Vec<Self> {
                work.take(len)
            }
            fn give_back(work: &mut Workspace<$t>, buffer: Vec<Self>) {
                work.give(buffer);
            }
            fn as_real(tile: TileMut<'_, Self>) -> Result<TileMut<'_, $t>, TileMut<'_, Self>> {
                Ok(tile)
            }
        }
        impl Real for $t {
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as $t
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            type Complex = Complex<$t>;
            const NAME: &'static str = stringify!($t);
            fn pick<T: Twin>($single: T::Of<f32>, $double: T::Of<f64>) -> T::Of<$t> {
                $own
            }
        }
        impl Scalar for Complex<$t> {
            type Real = $t;
            const IS_COMPLEX: bool = true;
            const ZERO: Self = Complex { re: 0.0, im: 0.0 };
            const ONE: Self = Complex { re: 1.0, im: 0.0 };
            #[inline(always)]
            fn from_parts(re: $t, im: $t) -> Self {
                Complex { re, im }
            }
            #[inline(always)]
            fn re(self) -> $t {
                self.re
            }
            #[inline(always)]
            fn im(self) -> $t {
                self.im
            }
            fn lend(work: &mut Workspace<$t>, len: usize) -> Vec<Self> {
                work.take_complex(len)
            }
            fn give_back(work: &mut Workspace<$t>, buffer: Vec<Self>) {
                work.give_complex(buffer);
            }
            fn as_real(tile: TileMut<'_, Self>) -> Result<TileMut<'_, $t>, TileMut<'_, Self>> {
                Err(tile)
            }
        }
    };
}
real!(f32, (single, _double) => single);
real!(f64, (_single, double) => double);
