//! Tasks on all threads: the only door to rayon.
//!
//! ```
//! use bochner::parallel::Parallel;
//! let mut squares = vec![0; 1000];
//! squares.chunks_mut(64).enumerate().in_parallel().for_each(|(i, chunk)| {
//!     chunk.iter_mut().zip(64 * i..).for_each(|(to, number)| *to = number * number);
//! });
//! assert_eq!(squares[999], 998_001);
//! ```
//!
//! What runs on the threads is one function of a number, compiled once: rayon's own iterators are compiled again for every
//! loop and every map, which was a sixth of the code of this crate.
//!
//! Tasks belong to the job that started them: they run under its stop flag ([`Context`](crate::Context)), whichever
//! thread takes them. Once the flag is raised no other task of a loop is begun; those of [`Tasks::map`] are, for whoever made
//! the loop counts on every result.

use crate::error::Result;
use crate::interrupt::Flag;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Runs `task` for every number below `count`, on all threads.
pub fn each(count: usize, task: &(dyn Fn(usize) + Sync)) {
    #[cfg(feature = "rayon")]
    if count > 1 {
        use rayon::prelude::*;
        // Pieces small enough that whoever is done first finds another one.
        let piece = (count / 64).max(1);
        let flag = Flag::current();
        return (0..count.div_ceil(piece)).into_par_iter().with_max_len(1).for_each(|index| {
            flag.within(|| (index * piece..((index + 1) * piece).min(count)).for_each(task));
        });
    }
    (0..count).for_each(task);
}

/// Runs both, on two threads where there are two.
pub fn join(first: &mut (dyn FnMut() + Send), second: &mut (dyn FnMut() + Send)) {
    #[cfg(feature = "rayon")]
    {
        let flag = Flag::current();
        // From outside of the pool both run inside of it.
        rayon::join(|| flag.within(first), || flag.within(second));
    }
    #[cfg(not(feature = "rayon"))]
    (first(), second());
}

/// Number of threads that share tasks.
#[must_use]
pub fn threads() -> usize {
    #[cfg(feature = "rayon")]
    return rayon::current_num_threads();
    #[cfg(not(feature = "rayon"))]
    1
}

/// Whether this is one of the threads that share tasks.
#[must_use]
pub fn is_inside() -> bool {
    #[cfg(feature = "rayon")]
    return rayon::current_thread_index().is_some();
    #[cfg(not(feature = "rayon"))]
    true
}

/// What can be shared among threads, item by item.
pub trait Parallel: IntoIterator<Item: Send> + Sized {
    /// The items as tasks: each is worth a microsecond or more.
    fn in_parallel(self) -> Tasks<Self::Item> {
        Tasks(self.into_iter().map(|item| Mutex::new(Some(item))).collect())
    }
}

impl<I: IntoIterator<Item: Send>> Parallel for I {}

/// Items that wait for a thread.
#[derive(Debug)]
#[must_use = "tasks do nothing until they are run"]
pub struct Tasks<T>(Vec<Mutex<Option<T>>>);

fn unlocked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T: Send> Tasks<T> {
    /// Runs `task` on every item.
    pub fn for_each(self, task: impl Fn(T) + Sync) {
        self.for_each_init(|| (), |(), item| task(item));
    }

    /// Runs `task` on every item, with something that one task hands on to the next: `init` makes as many as run at a time.
    pub fn for_each_init<S: Send>(self, init: impl Fn() -> S + Sync, task: impl Fn(&mut S, T) + Sync) {
        let stop = Flag::current();
        self.run(init, |state, _, item| {
            if !stop.raised() {
                task(state, item);
            }
        });
    }

    /// Runs `task` on every item until one fails.
    ///
    /// # Errors
    /// That of the first item that fails, in their order and not in that of the threads; that the job is to stop.
    pub fn try_for_each(self, task: impl Fn(T) -> Result<()> + Sync) -> Result<()> {
        self.try_for_each_init(|| (), |(), item| task(item))
    }

    /// [`try_for_each`](Self::try_for_each) with something that one task hands on to the next.
    ///
    /// # Errors
    /// That of the first item that fails.
    pub fn try_for_each_init<S: Send>(
        self,
        init: impl Fn() -> S + Sync,
        task: impl Fn(&mut S, T) -> Result<()> + Sync,
    ) -> Result<()> {
        let (first, told, stop) = (AtomicUsize::new(usize::MAX), Mutex::new(Ok(())), Flag::current());
        self.run(init, |state, i, item| {
            if i < first.load(Ordering::Relaxed)
                && let Err(error) = stop.check().and_then(|()| task(state, item))
            {
                let mut told = unlocked(&told);
                if i < first.fetch_min(i, Ordering::Relaxed) {
                    *told = Err(error);
                }
            }
        });
        told.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// What `task` makes of every item, in their order.
    pub fn map<U: Send>(self, task: impl Fn(T) -> U + Sync) -> Vec<U> {
        self.map_init(|| (), |(), item| task(item))
    }

    /// [`map`](Self::map) with something that one task hands on to the next.
    pub fn map_init<S: Send, U: Send>(
        self,
        init: impl Fn() -> S + Sync,
        task: impl Fn(&mut S, T) -> U + Sync,
    ) -> Vec<U> {
        let made: Vec<Mutex<Option<U>>> = self.0.iter().map(|_| Mutex::new(None)).collect();
        self.run(init, |state, i, item| *unlocked(&made[i]) = Some(task(state, item)));
        made.into_iter().filter_map(|made| made.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
    }

    fn run<S: Send>(self, init: impl Fn() -> S + Sync, task: impl Fn(&mut S, usize, T) + Sync) {
        let idle = Mutex::new(Vec::new());
        each(self.0.len(), &|i| {
            let item = unlocked(&self.0[i]).take().expect("every item is taken once");
            let kept = unlocked(&idle).pop();
            let mut state = kept.unwrap_or_else(&init);
            task(&mut state, i, item);
            unlocked(&idle).push(state);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn every_item_is_seen_once_and_results_keep_their_order() {
        for count in [0, 1, 2, 63, 64, 65, 1000] {
            let squares = (0..count).in_parallel().map(|i| i * i);
            assert_eq!(squares, (0..count).map(|i| i * i).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_first_error_in_order_is_the_one_that_is_told() {
        for _ in 0..20 {
            let failing = |i: usize| if i % 7 == 3 { Err(Error::parameter("i", "another", i)) } else { Ok(()) };
            let told = (0..500).in_parallel().try_for_each(failing).unwrap_err().to_string();
            assert_eq!(told, Error::parameter("i", "another", 3).to_string());
        }
    }

    /// Once it was: a loop of many tasks ran to its end after Ctrl-C, and tasks in other threads looked at flags of other jobs.
    #[test]
    fn tasks_belong_to_the_job_that_started_them_and_stop_with_it() {
        let up = || Flag { stop: Some(Arc::new(AtomicBool::new(true))), meter: None };
        let done = AtomicUsize::new(0);
        let count = |_: usize| _ = done.fetch_add(1, Ordering::Relaxed);
        up().within(|| (0..500).in_parallel().for_each(count));
        assert_eq!(done.swap(0, Ordering::Relaxed), 0);
        let counted = |i| {
            count(i);
            Ok(())
        };
        let told = up().within(|| (0..500).in_parallel().try_for_each(counted));
        assert!(matches!(told, Err(Error::Interrupted)) && done.swap(0, Ordering::Relaxed) == 0);
        assert_eq!(up().within(|| (0..500).in_parallel().map(|_| crate::interrupt::raised())), [true; 500]);
        // A flag that comes up in the middle: at most the tasks at hand are finished, one a thread.
        let flag = Flag { stop: Some(Arc::default()), meter: None };
        flag.within(|| {
            (0..10_000).in_parallel().for_each(|i| {
                count(i);
                flag.stop.iter().for_each(|stop| stop.store(true, Ordering::Relaxed));
            });
        });
        assert!((1..=threads()).contains(&done.into_inner()));
        let seen = Mutex::new(0);
        let mut look = || *unlocked(&seen) += usize::from(crate::interrupt::raised());
        let mut other = || *unlocked(&seen) += usize::from(crate::interrupt::raised());
        up().within(|| join(&mut look, &mut other));
        assert_eq!(*unlocked(&seen), 2);
    }

    #[test]
    fn states_are_handed_on() {
        let made = AtomicUsize::new(0);
        let new = || made.fetch_add(1, Ordering::Relaxed);
        (0..1000).in_parallel().for_each_init(new, |_, _| {});
        assert!(made.into_inner() <= threads());
    }
}
