//! Progress: a bar on a terminal; elsewhere a line every ten seconds, for logs.
//!
//! Lines are written by a thread of their own: whatever a command does, and whether or not it says how far it is, whoever waits
//! sees that it lives.

use crate::cli::Context;
use bochner::words;
use bochner_table::failure::Outcome;
use bochner_table::interrupt;
use bochner_table::progress::{Progress, Watch};
use bochner_table::read::Input;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time between two lines.
const EVERY: Duration = Duration::from_secs(10);

/// The pieces of work at hand, the latest last.
static AT_HAND: Mutex<Vec<(u64, ProgressBar)>> = Mutex::new(Vec::new());
/// The number of the next one.
static NEXT: AtomicU64 = AtomicU64::new(0);

fn at_hand() -> MutexGuard<'static, Vec<(u64, ProgressBar)>> {
    AT_HAND.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether bars are shown, as the user wants it and standard error allows it.
fn shows_bars(context: &Context) -> bool {
    !context.global.quiet && io::stderr().is_terminal()
}

/// Begins to write lines, if there is no terminal for bars and the user has not asked for silence.
pub(crate) fn speak_now_and_then(context: &Context) {
    if context.global.quiet || shows_bars(context) {
        return;
    }
    let start = Instant::now();
    let speak = move || {
        loop {
            std::thread::sleep(EVERY);
            let said = line(at_hand().last().map(|(_, bar)| bar), start.elapsed());
            // Nobody reads: nobody is to be told.
            if writeln!(io::stderr().lock(), "bochner … {said}").is_err() {
                return;
            }
        }
    };
    // Without threads there is silence, as before; the work goes on.
    let _ = std::thread::Builder::new().name("bochner-progress".into()).spawn(speak);
}

/// `training, 45 % after 20 s, about 24 s left`.
fn line(bar: Option<&ProgressBar>, running: Duration) -> String {
    let Some(bar) = bar else { return format!("at work for {}", in_words(running)) };
    let what = Some(bar.message()).filter(|message| !message.is_empty()).unwrap_or_else(|| "at work".into());
    let after = in_words(bar.elapsed());
    match (bar.position(), bar.length()) {
        (done, Some(total)) if total > 0 && done > 0 => {
            let share = 100 * done.min(total) / total;
            let left = bar.eta();
            let left = if left.is_zero() { String::new() } else { format!(", about {} left", in_words(left)) };
            format!("{what}, {share} % after {after}{left}")
        }
        _ => format!("{what} for {after}"),
    }
}

fn in_words(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds < 60 => format!("{seconds} s"),
        seconds => words::duration(seconds as f64),
    }
}

const BYTES: &str = "{bar:28.cyan/dim} {percent:>3}%  {bytes_per_sec}, {eta} left  {msg}";

/// Steps of a long piece of work; also the place where it notices Ctrl-C.
#[derive(Debug)]
pub(crate) struct Bar {
    bar: ProgressBar,
    /// By which it is found among those at hand.
    number: u64,
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
        let visible = shows_bars(context);
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
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        at_hand().push((number, bar.clone()));
        Bar { bar, number, taken: None }
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

    fn apart(&self, show: &mut dyn FnMut() -> Outcome) -> Outcome {
        self.bar.suspend(show)
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
        at_hand().retain(|(number, _)| *number != self.number);
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_what_is_done_and_how_far_it_is() {
        assert_eq!(line(None, Duration::from_secs(20)), "at work for 20 s");
        let bar = ProgressBar::with_draw_target(Some(200), ProgressDrawTarget::hidden());
        assert_eq!(line(Some(&bar), Duration::ZERO), "at work for 0 s");
        bar.set_message("training");
        bar.set_position(90);
        assert!(line(Some(&bar), Duration::ZERO).starts_with("training, 45 % after 0 s"));
        let endless = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        endless.set_message("predicting");
        endless.set_position(7);
        assert_eq!(line(Some(&endless), Duration::ZERO), "predicting for 0 s");
    }
}
