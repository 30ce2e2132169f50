//! Bytes of a file, read by a thread of their own while others are being converted.

use super::input::Anywhere;
use std::io;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Bytes read at a time. The system copies a megabyte at a time half as fast again as an eighth of one.
const PIECE: usize = 1 << 20;

/// Pieces on their way: a reader that waits for none of them keeps its core busy.
const PIECES: usize = 4;

/// Pieces that were read before. They are kept: fresh ones would be mapped and cleared by the system page by page in every pass.
static USED: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

fn used() -> std::sync::MutexGuard<'static, Vec<Vec<u8>>> {
    USED.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The bytes of a part of a file in their order, in pieces that are whole numbers of up to eight bytes.
///
/// One thread copies what the system has read, another converts it: each finds its own bytes in its caches, and together they
/// are as fast as copying alone.
pub(super) struct Ahead {
    full: Option<Receiver<io::Result<Piece>>>,
    empty: SyncSender<Piece>,
    current: Piece,
    reader: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Piece {
    bytes: Vec<u8>,
    /// What has not been taken yet.
    left: Range<usize>,
}

/// The next piece, if there is somebody who may send one.
///
/// Waits awake for as long as two pieces take: a thread that sleeps is woken on the core of the one it then disturbs.
fn receive<T>(from: &Receiver<T>) -> Option<T> {
    const AWAKE: Duration = Duration::from_micros(200);
    let start = Instant::now();
    while start.elapsed() < AWAKE {
        for _ in 0..64 {
            match from.try_recv() {
                Err(TryRecvError::Empty) => std::hint::spin_loop(),
                found => return found.ok(),
            }
        }
    }
    from.recv().ok()
}

impl Ahead {
    /// Bytes from which it is worth a thread.
    pub(super) const LEAST: u64 = 8 * PIECE as u64;

    /// Begins to read the bytes `place`.
    pub(super) fn start(file: Anywhere, place: Range<u64>) -> io::Result<Self> {
        let (send_full, full) = sync_channel(PIECES);
        let (empty, take_empty) = sync_channel::<Piece>(PIECES);
        let read = move || {
            for at in place.clone().step_by(PIECE) {
                let len = (place.end - at).min(PIECE as u64) as usize;
                let Some(mut piece) = receive(&take_empty) else { break };
                let read = file.read_at(at, len, &mut piece.bytes);
                let is_last = read.is_err();
                let sent = send_full.send(read.map(|left| Piece { left, ..piece }));
                if is_last || sent.is_err() {
                    break;
                }
            }
            // Whoever asks for more is to hear that there is none.
            drop(send_full);
            let returned: Vec<Piece> = take_empty.into_iter().collect();
            let mut used = used();
            used.extend(returned.into_iter().map(|piece| piece.bytes));
            used.truncate(PIECES);
        };
        for _ in 0..PIECES {
            let bytes = used().pop().unwrap_or_default();
            empty.send(Piece { bytes, left: 0..0 }).expect("room for all of them");
        }
        let reader = thread::Builder::new().name("bochner-read".into()).spawn(read)?;
        Ok(Ahead { full: Some(full), empty, current: Piece::default(), reader: Some(reader) })
    }

    /// Up to `most` of the next bytes; none at the end.
    pub(super) fn next(&mut self, most: usize) -> io::Result<&[u8]> {
        if self.current.left.is_empty()
            && let Some(next) = self.full.as_ref().and_then(receive)
        {
            // The first one is nobody's; the reader may have ended.
            let done = std::mem::replace(&mut self.current, next?);
            if !done.bytes.is_empty() {
                let _ = self.empty.send(done);
            }
        }
        let taken = self.current.left.start..self.current.left.end.min(self.current.left.start.saturating_add(most));
        self.current.left.start = taken.end;
        Ok(&self.current.bytes[taken])
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        // A reader that waits for room finds nobody there and ends.
        self.full = None;
        let _ = self.empty.try_send(std::mem::take(&mut self.current));
        (self.empty, _) = sync_channel(0);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::Input;

    fn bytes(count: usize) -> Vec<u8> {
        (0..count).map(|i| (i * 31 + i / 251) as u8).collect()
    }

    fn ahead(all: &[u8], place: Range<u64>) -> Ahead {
        let file = Input::from_bytes("memory", all.to_vec()).anywhere().unwrap();
        Ahead::start(file, place).unwrap()
    }

    #[test]
    fn bytes_come_in_order_whatever_is_taken_at_a_time() {
        for (count, most) in [(1, 1), (100, 7), (PIECE, PIECE), (6 * PIECE + 5, PIECE), (5 * PIECE + 100, 300_007)] {
            let all = bytes(count + 16);
            let mut ahead = ahead(&all, 16..all.len() as u64);
            let mut found = Vec::new();
            loop {
                let next = ahead.next(most).unwrap();
                assert!(next.len() <= most);
                if next.is_empty() {
                    break;
                }
                found.extend_from_slice(next);
            }
            assert!(found == all[16..], "{count} {most}");
        }
    }

    #[test]
    fn a_file_that_ends_early_is_an_error_after_what_it_has() {
        let all = bytes(3 * PIECE);
        let mut ahead = ahead(&all, 0..4 * PIECE as u64);
        for _ in 0..3 {
            assert_eq!(ahead.next(PIECE).unwrap().len(), PIECE);
        }
        assert!(ahead.next(PIECE).is_err());
    }

    #[test]
    fn nobody_waits_for_a_reader_that_is_given_up() {
        let all = bytes(20 * PIECE);
        drop(ahead(&all, 0..all.len() as u64));
        let mut begun = ahead(&all, 0..all.len() as u64);
        assert_eq!(begun.next(10).unwrap(), &all[..10]);
    }
}
