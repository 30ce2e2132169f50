//! Files that others change while they are read: an error that says so, or the answer to the file as it was; never one to
//! rows of which some are old and some are new.

use bochner::model::kinds::RidgeSolverName;
use bochner_table::failure::{Failure, Outcome};
use bochner_table::fit::{CheckpointRequest, Request, fit_data};
use bochner_table::map_request::MapRequest;
use bochner_table::pipeline::Preparation;
use bochner_table::predict::{NewCells, Use, open, predict};
use bochner_table::progress::{Progress, Unwatched, Watch};
use bochner_table::read::{Data, Input, Missing, Options, Selection};
use bochner_table::sample::Sampled;
use bochner_table::transform::Transform;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Mutex;

const ROWS: usize = 120;

/// Numbers of a fixed width: four columns, of which the last is the target.
fn cell(i: usize, j: usize, version: usize) -> f64 {
    let x = ((i * (3 + 2 * j) + 5 * version) % 90) as f64 / 100.0;
    1.0 + if j == 3 { (x * 0.5).floor() + ((i * 7 + version) % 40) as f64 / 100.0 } else { x }
}

fn numbers(version: usize) -> impl Iterator<Item = f64> {
    (0..ROWS).flat_map(move |i| (0..4).map(move |j| cell(i, j, version)))
}

fn npy(columns: std::ops::Range<usize>, version: usize) -> Vec<u8> {
    let shape = format!("({ROWS}, {})", columns.len());
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    (0..ROWS)
        .flat_map(|i| columns.clone().map(move |j| (i, j)))
        .for_each(|(i, j)| bytes.extend(cell(i, j, version).to_le_bytes()));
    bytes
}

/// An archive of one array, as it is stored.
fn npz(version: usize) -> Vec<u8> {
    let (array, name) = (npy(0..4, version), b"X.npy");
    let mut crc = flate2::Crc::new();
    crc.update(&array);
    let mut sizes = crc.sum().to_le_bytes().to_vec();
    sizes.extend((array.len() as u32).to_le_bytes());
    sizes.extend((array.len() as u32).to_le_bytes());
    sizes.extend((name.len() as u16).to_le_bytes());
    sizes.extend([0, 0]);
    let mut bytes = [b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0", &sizes[..], name, &array].concat();
    let at = bytes.len() as u32;
    bytes.extend([b"PK\x01\x02\x14\0\x14\0\0\0\0\0\0\0\0\0", &sizes[..], &[0; 14], name].concat());
    let len = bytes.len() as u32 - at;
    bytes.extend([b"PK\x05\x06\0\0\0\0\x01\0\x01\0", &len.to_le_bytes()[..], &at.to_le_bytes(), &[0, 0]].concat());
    bytes
}

fn csv(version: usize) -> Vec<u8> {
    let all: Vec<String> = numbers(version).map(|v| format!("{v:.2}")).collect();
    let rows = all.chunks(4).map(|row| row.join(",") + "\n");
    std::iter::once("a,b,c,d\n".to_owned()).chain(rows).collect::<String>().into_bytes()
}

fn gzip(version: usize) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    encoder.write_all(&csv(version)).unwrap();
    encoder.finish().unwrap()
}

fn libsvm(version: usize) -> Vec<u8> {
    let row = |i: usize| {
        let at = |j| cell(i, j, version);
        format!("{:.2} 1:{:.2} 2:{:.2} 3:{:.2}\n", at(3), at(0), at(1), at(2))
    };
    (0..ROWS).map(row).collect::<String>().into_bytes()
}

fn idx(version: usize) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0x0e, 2];
    bytes.extend((ROWS as u32).to_be_bytes());
    bytes.extend(4u32.to_be_bytes());
    numbers(version).for_each(|v| bytes.extend(v.to_be_bytes()));
    bytes
}

/// A file of another format as the program itself writes it.
fn parquet(version: usize) -> Vec<u8> {
    let (input, path) =
        (Input::from_bytes("t", npy(0..4, version)), folder("parquet").join(format!("{version}.parquet")));
    let data = Data::open(input, None, &Selection::default(), &Options::default()).unwrap();
    let map = MapRequest {
        map: Some("fourier".into()),
        features: Some(4),
        length_scale: Some("1".into()),
        ..MapRequest::default()
    };
    let made = Transform::new(&map, &data, Preparation::None, 0.5, 0, &Unwatched).unwrap();
    made.write::<f64>(&data, Some(&path), &Unwatched).unwrap();
    fs::read(path).unwrap()
}

/// A file: its name, its contents in two versions of the same size, and its target.
struct Format {
    name: &'static str,
    make: fn(usize) -> Vec<u8>,
    target: Option<&'static str>,
}

impl Format {
    fn version(&self, version: usize) -> Vec<u8> {
        static MADE: Mutex<BTreeMap<(&str, usize), Vec<u8>>> = Mutex::new(BTreeMap::new());
        MADE.lock().unwrap().entry((self.name, version)).or_insert_with(|| (self.make)(version)).clone()
    }
}

const FORMATS: [Format; 7] = [
    Format { name: "t.csv", make: csv, target: Some("d") },
    Format { name: "t.csv.gz", make: gzip, target: Some("d") },
    Format { name: "t.npy", make: |version| npy(0..4, version), target: Some("4") },
    Format { name: "t.npz", make: npz, target: Some("4") },
    Format { name: "t.idx", make: idx, target: Some("4") },
    Format { name: "t.libsvm", make: libsvm, target: None },
    Format { name: "t.parquet", make: parquet, target: Some("f4") },
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Change {
    Truncated,
    Grown,
    /// Another file gets the name.
    Replaced,
    Overwritten,
    /// And the time set back: only the rows can tell.
    OverwrittenInSecret,
}

const CHANGES: [Change; 5] =
    [Change::Truncated, Change::Grown, Change::Replaced, Change::Overwritten, Change::OverwrittenInSecret];

impl Change {
    fn apply(self, path: &Path, other: &[u8]) {
        let file = || File::options().write(true).open(path).unwrap();
        let bytes = fs::read(path).unwrap();
        match self {
            Change::Truncated => {
                // At the end of a line, where there are lines.
                let half = bytes.len() / 2;
                let end =
                    bytes[..half].iter().rposition(|c| *c == b'\n').filter(|_| path.extension().unwrap() == "csv");
                file().set_len(end.map_or(half, |end| end + 1) as u64).unwrap();
            }
            Change::Grown => {
                let last = bytes.len() - bytes.len() / 10;
                File::options().append(true).open(path).unwrap().write_all(&bytes[last..]).unwrap();
            }
            Change::Replaced => {
                let beside = path.with_extension("new");
                fs::write(&beside, other).unwrap();
                fs::rename(beside, path).unwrap();
            }
            Change::Overwritten | Change::OverwrittenInSecret => {
                let (before, mut file) = (fs::metadata(path).unwrap().modified().unwrap(), file());
                assert_eq!(bytes.len(), other.len());
                file.write_all(other).unwrap();
                if self == Change::OverwrittenInSecret {
                    file.set_modified(before).unwrap();
                }
            }
        }
    }
}

/// Counts passes and blocks, and does something once after so many of them.
struct Meddler<'a>(Rc<RefCell<(usize, Option<Box<dyn FnOnce() + 'a>>)>>);

impl std::fmt::Debug for Meddler<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meddler")
    }
}

impl<'a> Meddler<'a> {
    fn after(moments: usize, job: impl FnOnce() + 'a) -> Self {
        Meddler(Rc::new(RefCell::new((moments, Some(Box::new(job))))))
    }

    fn moment(&self) -> Outcome {
        let mut state = self.0.borrow_mut();
        match state.0.checked_sub(1) {
            Some(left) => state.0 = left,
            None => {
                if let Some(job) = state.1.take() {
                    job();
                }
            }
        }
        Ok(())
    }

    fn has_acted(&self) -> bool {
        self.0.borrow().1.is_none()
    }
}

/// One that outlives the test, as those who watch have to be owned.
fn owned(meddler: &Meddler<'static>) -> Meddler<'static> {
    Meddler(Rc::clone(&meddler.0))
}

impl Progress for Meddler<'static> {
    fn read(&self) -> Outcome {
        self.moment()
    }
}

impl Watch for Meddler<'static> {
    fn reading(&self, _: &Input, _: &'static str) -> Outcome<Box<dyn Progress>> {
        self.moment()?;
        Ok(Box::new(owned(self)))
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("bochner-changing-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn request(solver: RidgeSolverName) -> Request {
    let map = MapRequest {
        map: Some("fourier".into()),
        features: Some(12),
        length_scale: Some("1".into()),
        ..MapRequest::default()
    };
    Request { map, penalty: Some(0.1), solver, task: Some(bochner::catalogue::Task::Regression), ..Request::default() }
}

fn fitted(path: &Path, target: Option<&str>, request: &Request, watch: &dyn Watch) -> Outcome<Vec<u8>> {
    let targets = target.map(str::to_owned).into_iter().collect();
    let selection = Selection { targets, ..Selection::default() };
    let data = Data::open(Input::open(path)?, None, &selection, &Options::default())?;
    Ok(fit_data(request, &data, watch)?.model.model.to_bytes()?)
}

/// Whether a job that was meddled with was refused for it, or has answered as if it was not; and whether it was meddled with.
fn judge<T: PartialEq>(
    what: &str,
    format: &Format,
    change: Change,
    moment: usize,
    expected: &T,
    job: impl FnOnce(&Path, &Meddler<'static>) -> Outcome<T>,
) -> bool {
    let path = folder(what).join(format.name);
    fs::write(&path, format.version(0)).unwrap();
    let (changed, other) = (path.clone(), format.version(1));
    let meddler = Meddler::after(moment, move || change.apply(&changed, &other));
    let told = format!("{what} of {}, {change:?} at moment {moment}", format.name);
    match job(&path, &meddler) {
        Err(Failure::Failed(why)) => {
            assert!(meddler.has_acted() && change != Change::Replaced, "{told}: {why}");
            let checksum = change == Change::OverwrittenInSecret && why.contains("does not match its checksum");
            assert!(checksum || why.contains("the file changed while it was being read: "), "{told}: {why}");
        }
        Err(other) => panic!("{told}: {other:?}"),
        Ok(found) => {
            // Another file under the same name is not read, and in secret the last pass may have had all old rows already.
            let harmless = matches!(change, Change::Replaced | Change::OverwrittenInSecret);
            assert!(!meddler.has_acted() || harmless, "{told}: nobody noticed");
            assert!(found == *expected, "{told}: another answer");
        }
    }
    meddler.has_acted()
}

#[test]
fn a_fit_never_mixes_rows_of_two_versions_of_a_file() {
    // One pass of training over all formats, many over two of them.
    for (solver, formats) in
        [(RidgeSolverName::Auto, &FORMATS[..]), (RidgeSolverName::ConjugateGradients, &FORMATS[1..3])]
    {
        let request = request(solver);
        for format in formats {
            let what = format!("fit-{}", solver.name());
            let path = folder(&what).join(format.name);
            fs::write(&path, format.version(0)).unwrap();
            let expected = fitted(&path, format.target, &request, &Unwatched).unwrap();
            for change in CHANGES {
                // Before the first look, unless nobody has seen old rows then; before training; after blocks of rows.
                let mut moment = usize::from(change == Change::OverwrittenInSecret);
                while judge(&what, format, change, moment, &expected, |path, watch| {
                    fitted(path, format.target, &request, watch)
                }) {
                    moment += 1;
                    if moment > 5 {
                        break;
                    }
                }
                assert!(moment >= 3, "{} {change:?}: only {moment} moments", format.name);
            }
        }
        fs::remove_dir_all(folder(&format!("fit-{}", solver.name()))).unwrap();
    }
}

/// The file at `path` with its labels, or with its target.
fn data(path: &Path, labels: Option<&Path>, target: Option<&str>) -> Outcome<Data> {
    let targets = target.map(str::to_owned).into_iter().collect();
    let selection = Selection { targets, ..Selection::default() };
    let labels = labels.map(Input::open).transpose()?;
    Ok(Data::open(Input::open(path)?, labels, &selection, &Options::default())?)
}

#[test]
fn features_predictions_and_samples_are_those_of_one_file() {
    let map = MapRequest {
        map: Some("fourier".into()),
        features: Some(6),
        length_scale: Some("1".into()),
        ..MapRequest::default()
    };
    for format in &FORMATS {
        let out = folder("out").join("features.npy");
        let transformed = |path: &Path, watch: &dyn Watch| {
            let data = data(path, None, None)?;
            let transform = Transform::new(&map, &data, Preparation::Scale, 0.5, 0, watch)?;
            let _ = fs::remove_file(&out);
            transform.write::<f64>(&data, Some(&out), watch)?;
            Ok(fs::read(&out)?)
        };
        let path = folder("first").join(format.name);
        fs::write(&path, format.version(0)).unwrap();
        let all = request(RidgeSolverName::Auto);
        let model = fit_data(&all, &data(&path, None, format.target).unwrap(), &Unwatched).unwrap().model;
        let answered = |path: &Path, watch: &dyn Watch| {
            let data = open(&model, path, None, Options::default(), true, NewCells::default())?;
            let scored = predict(&model, &data, Use { scored: true, ..Use::default() }, watch)?;
            Ok(scored.compared.map(|compared| compared.truth))
        };
        let sampled = |path: &Path, watch: &dyn Watch| {
            let data = data(path, None, format.target)?;
            let seed = bochner::random::Seed::new(0);
            let sampled = Sampled::read(&data, 50, Preparation::Scale, 0.5, Missing::Refuse, seed, watch)?;
            Ok(sampled.rows)
        };
        let expected = transformed(&path, &Unwatched).unwrap();
        let (answers, rows) = (answered(&path, &Unwatched).unwrap(), sampled(&path, &Unwatched).unwrap());
        for change in CHANGES {
            for moment in 1..4 {
                let jobs = [
                    judge("transform", format, change, moment, &expected, |path, watch| transformed(path, watch)),
                    judge("predict", format, change, moment, &answers, |path, watch| answered(path, watch)),
                    judge("sample", format, change, moment, &rows, |path, watch| sampled(path, watch)),
                ];
                assert!(moment > 1 || jobs.iter().all(|acted| *acted));
            }
        }
    }
}

#[test]
fn labels_in_a_second_file_are_watched_too() {
    let labels = Format { name: "labels.npy", make: |version| npy(3..4, version), target: None };
    let rows = folder("labels").join("rows.npy");
    fs::write(&rows, npy(0..3, 0)).unwrap();
    let request = request(RidgeSolverName::Auto);
    let fitted = |path: &Path, watch: &dyn Watch| {
        Ok(fit_data(&request, &data(&rows, Some(path), None)?, watch)?.model.model.to_bytes()?)
    };
    let path = folder("labels").join(labels.name);
    fs::write(&path, npy(3..4, 0)).unwrap();
    let expected = fitted(&path, &Unwatched).unwrap();
    for change in CHANGES {
        for moment in 1..4 {
            assert!(judge("labels", &labels, change, moment, &expected, |path, watch| fitted(path, watch)));
        }
    }
}

#[test]
fn a_checkpoint_is_continued_with_the_same_rows_only() {
    let folder = folder("resume");
    let (path, checkpoint) = (folder.join("t.npy"), folder.join("state"));
    let saved = |resume| CheckpointRequest { path: checkpoint.clone(), every: 0.0, resume };
    let request = |resume| Request { checkpoint: Some(saved(resume)), ..request(RidgeSolverName::Auto) };
    fs::write(&path, npy(0..4, 0)).unwrap();
    let expected = fitted(&path, Some("4"), &request(false), &Unwatched).unwrap();
    assert!(fitted(&path, Some("4"), &request(true), &Unwatched).unwrap() == expected);
    // Two rows in each other's place: means and variances are the same.
    let mut bytes = npy(0..4, 0);
    let start = bytes.len() - 32 * ROWS;
    let (first, second) = bytes[start..start + 64].split_at_mut(32);
    assert!(first != second);
    first.swap_with_slice(second);
    fs::write(&path, bytes).unwrap();
    let error = fitted(&path, Some("4"), &request(true), &Unwatched).unwrap_err().to_string();
    assert!(error.contains("belongs to other data"), "{error}");
    // And without being asked to continue, nobody's hours are replaced.
    let error = fitted(&path, Some("4"), &request(false), &Unwatched).unwrap_err().to_string();
    assert!(error.contains("is there already"), "{error}");
    fs::remove_dir_all(folder).unwrap();
}
