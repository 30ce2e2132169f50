use super::collect::{BLOCK, Collector, Origin};
use super::gram::{Moments, Products, Totals};
use crate::error::{Error, Result, check_count, check_dim, check_positive};
use crate::feature::FeatureMap;
use crate::linalg::{Lower, Workspace};
use crate::rows::{RowBlock, check_finite, class_of};
use crate::scalar::Scalar;
use ndarray::{ArrayView1, ArrayView2};

/// The sums of a [`Gram`](super::Gram) for every class apart: `F_cᴴWF_c` and `F_cᴴW1` over the rows of class `c`.
///
/// Together they cost the multiplications of a single Gram matrix over all rows, since every row enters one of them; and
/// their sum is that matrix. Rows wait, as inputs, until a class has 1,024 of them: same rows, same bits, however they
/// are cut into blocks.
#[derive(Debug)]
pub struct ClassGram<T: Scalar> {
    input_dim: usize,
    classes: Vec<Class<T>>,
    collector: Collector<T>,
    work: Workspace<T::Real>,
    count: u64,
}

/// The sums of one class, and its rows that wait to be added.
#[derive(Debug, Clone)]
pub(crate) struct Class<T: Scalar> {
    pub(crate) sums: Products<T::Wide>,
    pub(crate) totals: Totals,
    pub(crate) rows: Vec<T::Real>,
    pub(crate) weights: Vec<T::Real>,
    /// Where the waiting rows stood in the stream.
    pub(crate) numbers: Vec<u64>,
}

impl<T: Scalar> Clone for ClassGram<T> {
    fn clone(&self) -> Self {
        let (classes, collector) = (self.classes.clone(), self.collector.clone());
        ClassGram { input_dim: self.input_dim, classes, collector, work: Workspace::new(), count: self.count }
    }
}

impl<T: Scalar> ClassGram<T> {
    /// No rows yet, of `input_dim` inputs and `dim` features, for labels below `classes`.
    ///
    /// # Errors
    /// No features, no classes, or more than memory holds.
    pub fn new(input_dim: usize, dim: usize, classes: usize) -> Result<Self> {
        check_count("classes", classes)?;
        let class = |_| -> Result<Class<T>> {
            let (sums, totals) = (Products::zeros(dim, 0)?, Totals::zeros(0));
            Ok(Class { sums, totals, rows: Vec::new(), weights: Vec::new(), numbers: Vec::new() })
        };
        let classes = (0..classes).map(class).collect::<Result<_>>()?;
        Ok(ClassGram { input_dim, classes, collector: Collector::new(dim, 0)?, work: Workspace::new(), count: 0 })
    }

    /// Bytes of an accumulator of this size, whatever the number of rows.
    pub fn bytes(input_dim: usize, dim: usize, classes: usize) -> u64 {
        let waiting = (BLOCK as u64).saturating_mul(input_dim as u64 + 3).saturating_mul(size_of::<T::Real>() as u64);
        Lower::<T::Wide>::bytes(dim)
            .saturating_add(waiting)
            .saturating_mul(classes as u64)
            .saturating_add(Collector::<T>::bytes(dim, 0).saturating_mul(3))
    }

    /// Bytes of this one.
    pub(crate) fn own_bytes(&self) -> u64 {
        Self::bytes(self.input_dim, self.dim(), self.classes())
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.classes.len()
    }

    /// Number of rows pushed.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Length of an input row.
    pub fn input_dim(&self) -> usize {
        self.input_dim
    }

    /// Number of features.
    pub fn dim(&self) -> usize {
        self.collector.dim()
    }

    /// Length of a row, number of features, and every class.
    pub(crate) fn parts(&self) -> (usize, usize, &[Class<T>]) {
        (self.input_dim, self.collector.dim(), &self.classes)
    }

    /// The accumulator with these classes, as a file keeps them.
    ///
    /// # Errors
    /// Parts that do not fit together.
    pub(crate) fn from_parts(input_dim: usize, dim: usize, classes: Vec<Class<T>>) -> Result<Self> {
        check_count("classes", classes.len())?;
        let mut count = 0;
        for class in &classes {
            let waiting = class.numbers.len();
            if waiting >= BLOCK {
                return Err(Error::parameter("waiting rows", "fewer than make a block", waiting));
            }
            check_dim("number of features of a class", dim, class.sums.gram.order())?;
            check_dim("number of sums of a class", dim, class.sums.feature_sums.len())?;
            check_dim("number of waiting values", waiting.saturating_mul(input_dim), class.rows.len())?;
            check_dim("number of waiting weights", waiting, class.weights.len())?;
            count += class.totals.count + waiting as u64;
        }
        Ok(ClassGram { input_dim, classes, collector: Collector::new(dim, 0)?, work: Workspace::new(), count })
    }

    /// Adds rows whose one target is the number of their class.
    ///
    /// # Errors
    /// Shapes that do not fit, labels that are not numbers of classes, NaN or infinities, negative weights.
    pub fn push_rows<M>(&mut self, map: &M, block: RowBlock<'_, T::Real>) -> Result<()>
    where
        M: FeatureMap<Real = T::Real, Output = T> + ?Sized,
    {
        check_dim("number of columns of rows", self.input_dim, block.rows.ncols())?;
        check_dim("number of features of the map", self.collector.dim(), map.output_dim())?;
        check_dim("number of rows of targets", block.rows.nrows(), block.targets.nrows())?;
        check_dim("number of target columns", 1, block.targets.ncols())?;
        if let Some(weights) = &block.weights {
            check_dim("number of weights", block.rows.nrows(), weights.len())?;
        }
        check_finite("rows", block.rows, self.count as usize)?;
        for (i, row) in block.rows.rows().into_iter().enumerate() {
            let label = class_of(block.targets[[i, 0]], self.classes.len(), self.count as usize)?;
            let class = &mut self.classes[label];
            class.rows.extend(row.iter().copied());
            class.weights.push(block.weights.as_ref().map_or(T::Real::ONE, |weights| weights[i]));
            class.numbers.push(self.count);
            self.count += 1;
            if class.numbers.len() == BLOCK {
                class.add_waiting(self.input_dim, map, &mut self.collector, &mut self.work)?;
            }
        }
        Ok(())
    }

    /// Adds the rows of another accumulator, as if they came after this one's.
    ///
    /// # Errors
    /// Accumulators of other sizes.
    pub fn merge<M>(&mut self, map: &M, other: &ClassGram<T>) -> Result<()>
    where
        M: FeatureMap<Real = T::Real, Output = T> + ?Sized,
    {
        check_dim("number of classes of the other accumulator", self.classes.len(), other.classes.len())?;
        check_dim("number of inputs of the other accumulator", self.input_dim, other.input_dim)?;
        for (class, other) in self.classes.iter_mut().zip(&other.classes) {
            class.sums.add(&other.sums)?;
            class.totals.add(&other.totals);
            for (i, row) in other.rows.chunks(self.input_dim.max(1)).enumerate() {
                class.rows.extend_from_slice(row);
                class.weights.push(other.weights[i]);
                class.numbers.push(self.count + other.numbers[i]);
                if class.numbers.len() == BLOCK {
                    class.add_waiting(self.input_dim, map, &mut self.collector, &mut self.work)?;
                }
            }
        }
        self.count += other.count;
        Ok(())
    }

    /// Takes back the rows of another accumulator, as [`Gram::forget`](super::Gram::forget) does.
    ///
    /// # Errors
    /// Accumulators of other sizes, and rows that were not added, as far as sums tell; nothing is changed then.
    pub fn forget<M>(&mut self, map: &M, mut other: ClassGram<T>) -> Result<()>
    where
        M: FeatureMap<Real = T::Real, Output = T> + ?Sized,
    {
        check_dim("number of classes of the other accumulator", self.classes.len(), other.classes.len())?;
        check_dim("number of inputs of the other accumulator", self.input_dim, other.input_dim)?;
        self.add_waiting(map)?;
        other.add_waiting(map)?;
        let origin = Origin::zeros(self.dim(), 0);
        // All or nothing: a class may hold rows of which another has too few.
        let mut left = Vec::with_capacity(self.classes.len());
        for (class, other) in self.classes.iter().zip(other.classes) {
            let mut class = class.clone();
            let taken = other.sums.with_totals::<T>(other.totals, &origin);
            class.sums.subtract(&mut class.totals, &taken)?;
            if class.totals.count == 0 {
                (class.sums, class.totals) = (Products::zeros(self.collector.dim(), 0)?, Totals::zeros(0));
            }
            left.push(class);
        }
        self.classes = left;
        self.count = self.classes.iter().map(|class| class.totals.count).sum();
        Ok(())
    }

    /// Multiplies the weights of all rows so far.
    ///
    /// # Errors
    /// A factor that is not positive and finite.
    pub fn scale<M>(&mut self, map: &M, factor: f64) -> Result<()>
    where
        M: FeatureMap<Real = T::Real, Output = T> + ?Sized,
    {
        check_positive("factor", factor)?;
        self.add_waiting(map)?;
        for class in &mut self.classes {
            class.sums.scale(factor);
            class.totals.scale(factor);
        }
        Ok(())
    }

    /// How many times larger the sums were before rows were forgotten, of the class where that is most.
    pub fn cancellation(&self) -> f64 {
        let of = |class: &Class<T>| {
            let trace: f64 = class.sums.gram.diagonal().map(|v| v.re()).sum();
            if trace > 0.0 { 1.0 + class.totals.forgotten / trace } else { 1.0 }
        };
        self.classes.iter().map(of).fold(1.0, f64::max)
    }

    fn add_waiting<M>(&mut self, map: &M) -> Result<()>
    where
        M: FeatureMap<Real = T::Real, Output = T> + ?Sized,
    {
        let ClassGram { input_dim, classes, collector, work, .. } = self;
        classes.iter_mut().try_for_each(|class| class.add_waiting(*input_dim, map, collector, work))
    }

    /// The sums of every class, without targets.
    ///
    /// # Errors
    /// Features with NaN or infinities.
    pub fn finish<M>(self, map: &M) -> Result<Vec<Moments<T::Wide>>>
    where
        M: FeatureMap<Real = T::Real, Output = T> + ?Sized,
    {
        let ClassGram { input_dim, classes, mut collector, mut work, .. } = self;
        let mut finished = Vec::with_capacity(classes.len());
        let origin = Origin::zeros(collector.dim(), 0);
        for mut class in classes {
            class.add_waiting(input_dim, map, &mut collector, &mut work)?;
            finished.push(class.sums.with_totals::<T>(class.totals, &origin));
        }
        Ok(finished)
    }
}

impl<T: Scalar> Class<T> {
    fn add_waiting<M>(
        &mut self,
        input_dim: usize,
        map: &M,
        collector: &mut Collector<T>,
        work: &mut Workspace<T::Real>,
    ) -> Result<()>
    where
        M: FeatureMap<Real = T::Real, Output = T> + ?Sized,
    {
        let n = self.numbers.len();
        if n == 0 {
            return Ok(());
        }
        let shaped = |data, cols| ArrayView2::from_shape((n, cols), data).expect("one row per number");
        let block = RowBlock {
            rows: shaped(&self.rows, input_dim),
            targets: shaped(&[], 0),
            weights: Some(ArrayView1::from(&self.weights)),
        };
        let (sums, totals) = (&mut self.sums, &mut self.totals);
        let mut full = |gathered: super::Gathered<'_, T>| {
            sums.add_block(gathered, work);
            Ok(())
        };
        collector.restart();
        let each = &mut |weight, targets: ArrayView1<'_, T::Real>| totals.add_row(weight, targets);
        let done = collector.push_rows(map, block, each, &mut full).and_then(|()| collector.finish(&mut full));
        // Rows of a class are numbered among themselves there.
        done.map_err(|error| error.with_rows(|row| self.numbers.get(row).map_or(row, |number| *number as usize)))?;
        self.rows.clear();
        self.weights.clear();
        self.numbers.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Gram;
    use super::*;
    use crate::feature::{Describe, FourierSpec};
    use crate::random::{Role, Seed, Stream};
    use ndarray::{Array1, Array2, s};

    #[test]
    fn classes_together_are_the_gram_matrix_of_all_rows_however_they_are_cut() {
        let n = 3000;
        let mut normals = vec![0.0f64; n * 2];
        Stream::new(Seed::new(1), Role::Split, 0).normals_from(0, &mut normals);
        let rows = Array2::from_shape_vec((n, 2), normals).unwrap();
        let labels = Array2::from_shape_fn((n, 1), |(i, _)| if i % 7 == 0 { 2.0 } else { (i % 2) as f64 });
        let weights = Array1::from_shape_fn(n, |i| 0.5 + (i % 3) as f64);
        let map = FourierSpec { n_components: 20, seed: 3, ..FourierSpec::default() }.build::<f64>(2).unwrap();
        let push = |to: &mut ClassGram<f64>, range: std::ops::Range<usize>, step: usize| {
            for start in range.clone().step_by(step) {
                let cut = s![start..(start + step).min(range.end), ..];
                let weights = weights.slice(s![start..(start + step).min(range.end)]);
                let block = RowBlock { rows: rows.slice(cut), targets: labels.slice(cut), weights: Some(weights) };
                to.push_rows(&map, block).unwrap();
            }
        };
        let mut whole = ClassGram::new(2, 20, 4).unwrap();
        push(&mut whole, 0..n, n);
        let mut cut = ClassGram::new(2, 20, 4).unwrap();
        push(&mut cut, 0..n, 17);
        let (mut merged, mut rest) = (ClassGram::new(2, 20, 4).unwrap(), ClassGram::new(2, 20, 4).unwrap());
        push(&mut merged, 0..1300, 1000);
        push(&mut rest, 1300..n, 1000);
        merged.merge(&map, &rest).unwrap();
        assert_eq!(merged.count(), n as u64);
        let all = [whole, cut, merged].map(|sums| sums.finish(&map).unwrap());
        let mut gram = Gram::new(20, 1).unwrap();
        let block = RowBlock { rows: rows.view(), targets: labels.view(), weights: Some(weights.view()) };
        gram.push_rows(&map, block).unwrap();
        let exact = gram.finish().about_zero().unwrap();
        for i in 0..20 {
            for j in 0..=i {
                let sum: f64 = all[0].iter().map(|class| class.gram.row(i)[j]).sum();
                assert!((sum - exact.gram.row(i)[j]).abs() < 1e-9);
                for c in 0..4 {
                    assert_eq!(all[0][c].gram.row(i)[j], all[1][c].gram.row(i)[j]);
                    assert!((all[0][c].gram.row(i)[j] - all[2][c].gram.row(i)[j]).abs() < 1e-9);
                }
            }
            let sum: f64 = all[0].iter().map(|class| class.feature_sums[i]).sum();
            assert!((sum - exact.feature_sums[i]).abs() < 1e-9);
        }
        let counts: Vec<u64> = all[2].iter().map(|class| class.totals.count).collect();
        assert_eq!((counts.iter().sum::<u64>(), counts[3]), (n as u64, 0));
        let wrong = Array2::from_elem((n, 1), 4.0);
        let mut fresh = ClassGram::<f64>::new(2, 20, 4).unwrap();
        let block = RowBlock { rows: rows.view(), targets: wrong.view(), weights: None };
        assert!(fresh.push_rows(&map, block).is_err());
    }
}
