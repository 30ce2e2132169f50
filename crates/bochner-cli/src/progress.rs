//! Progress: a bar on a terminal, silence in a pipe.

use crate::cli::Context;
use crate::failure::Outcome;
use crate::interrupt;
use crate::read::Input;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const BYTES: &str = "{bar:28.cyan/dim} {percent:>3}%  {bytes_per_sec}, {eta} left  {msg}";

/// Steps of a long piece of work; also the place where it notices Ctrl-C.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Bytes read by all passes over a file, and those before this one.
    taken: Option<(Arc<AtomicU64>, u64)>,
}

impl Progress {
    /// A bar over `steps` steps.
    pub(crate) fn new(context: &Context, steps: u64) -> Self {
        Self::styled(context, Some(steps), "{bar:28.cyan/dim} {percent:>3}%  {elapsed} of about {eta_total}  {msg}")
    }

    /// A bar over the bytes of a file, for one pass: how much was read, how fast, how long it will take.
    pub(crate) fn reading(context: &Context, input: &Input, what: &'static str) -> Outcome<Self> {
        let mut progress = Self::styled(context, input.stored_len(), BYTES);
        let taken = input.taken();
        let before = taken.load(Ordering::Relaxed);
        progress.taken = Some((taken, before));
        progress.at(what)?;
        Ok(progress)
    }

    /// A bar over so many bytes.
    pub(crate) fn bytes(context: &Context, total: u64) -> Self {
        Self::styled(context, Some(total), BYTES)
    }

    /// A sign of life for work of unknown length.
    pub(crate) fn waiting(context: &Context) -> Self {
        Self::styled(context, None, "{spinner} {elapsed}  {msg}")
    }

    /// One that nobody sees.
    #[cfg(test)]
    pub(crate) fn hidden() -> Self {
        Progress { bar: ProgressBar::hidden(), taken: None }
    }

    /// Moves the bar to `position`.
    pub(crate) fn to(&self, position: u64) {
        self.bar.set_position(position);
    }

    /// Moves the bar to what has been read; fails if the user asked to stop.
    pub(crate) fn read(&self) -> Outcome {
        if let Some((taken, before)) = &self.taken {
            self.bar.set_position(taken.load(Ordering::Relaxed).saturating_sub(*before));
        }
        interrupt::check()
    }

    fn styled(context: &Context, steps: Option<u64>, style: &str) -> Self {
        let visible = !context.global.quiet && io::stderr().is_terminal();
        let target = if visible { ProgressDrawTarget::stderr_with_hz(10) } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(steps, target);
        let style = ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()).with_key(
            "eta_total",
            |state: &indicatif::ProgressState, out: &mut dyn std::fmt::Write| {
                let _ = write!(out, "{} s", (state.elapsed() + state.eta()).as_secs());
            },
        );
        bar.set_style(style.progress_chars("━━─"));
        if visible {
            bar.enable_steady_tick(Duration::from_millis(250));
        }
        Progress { bar, taken: None }
    }

    /// Says what is being done.
    pub(crate) fn at(&self, what: impl Into<std::borrow::Cow<'static, str>>) -> Outcome {
        self.bar.set_message(what);
        interrupt::check()
    }

    /// Counts steps done; fails if the user asked to stop.
    pub(crate) fn done(&self, steps: u64) -> Outcome {
        self.bar.inc(steps);
        interrupt::check()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
