//! Progress: a bar on a terminal, silence in a pipe.

use crate::cli::Context;
use crate::failure::Outcome;
use crate::interrupt;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal};
use std::time::Duration;

/// Steps of a long piece of work; also the place where it notices Ctrl-C.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// A bar over `steps` steps.
    pub(crate) fn new(context: &Context, steps: u64) -> Self {
        Self::styled(context, Some(steps), "{bar:28.cyan/dim} {percent:>3}%  {elapsed} of about {eta_total}  {msg}")
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
        Progress(bar)
    }

    /// Says what is being done.
    pub(crate) fn at(&self, what: impl Into<std::borrow::Cow<'static, str>>) -> Outcome {
        self.0.set_message(what);
        interrupt::check()
    }

    /// Counts steps done; fails if the user asked to stop.
    pub(crate) fn done(&self, steps: u64) -> Outcome {
        self.0.inc(steps);
        interrupt::check()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
