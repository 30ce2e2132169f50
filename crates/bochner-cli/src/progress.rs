//! Progress: a bar on a terminal, silence in a pipe.

use crate::cli::Context;
use bochner_table::failure::Outcome;
use bochner_table::interrupt;
use bochner_table::progress::{Progress, Watch};
use bochner_table::read::Input;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::borrow::Cow;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const BYTES: &str = "{bar:28.cyan/dim} {percent:>3}%  {bytes_per_sec}, {eta} left  {msg}";

/// Steps of a long piece of work; also the place where it notices Ctrl-C.
#[derive(Debug)]
pub(crate) struct Bar {
    bar: ProgressBar,
    /// Bytes read by all passes over a file, and those before this one.
    taken: Option<(Arc<AtomicU64>, u64)>,
}

impl Bar {
    /// A bar over so many bytes.
    pub(crate) fn bytes(context: &Context, total: u64) -> Self {
        Self::styled(context, Some(total), BYTES)
    }

    /// Moves the bar to `position`.
    pub(crate) fn to(&self, position: u64) {
        self.bar.set_position(position);
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
        Bar { bar, taken: None }
    }
}

impl Progress for Bar {
    fn at(&self, what: Cow<'static, str>) -> Outcome {
        self.bar.set_message(what);
        interrupt::check()
    }

    fn done(&self, steps: u64) -> Outcome {
        self.bar.inc(steps);
        interrupt::check()
    }

    fn read(&self) -> Outcome {
        if let Some((taken, before)) = &self.taken {
            self.bar.set_position(taken.load(Ordering::Relaxed).saturating_sub(*before));
        }
        interrupt::check()
    }
}

impl Watch for Context {
    fn steps(&self, steps: u64) -> Box<dyn Progress> {
        let style = "{bar:28.cyan/dim} {percent:>3}%  {elapsed} of about {eta_total}  {msg}";
        Box::new(Bar::styled(self, Some(steps), style))
    }

    fn waiting(&self) -> Box<dyn Progress> {
        Box::new(Bar::styled(self, None, "{spinner} {elapsed}  {msg}"))
    }

    /// How much was read, how fast, how long it will take.
    fn reading(&self, input: &Input, what: &'static str) -> Outcome<Box<dyn Progress>> {
        let mut bar = Bar::styled(self, input.stored_len(), BYTES);
        let taken = input.taken();
        let before = taken.load(Ordering::Relaxed);
        bar.taken = Some((taken, before));
        bar.at(what.into())?;
        Ok(Box::new(bar))
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
