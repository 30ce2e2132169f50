//! Files beside a checkpoint that others have made: they are neither replaced nor removed.

use bochner::model::kinds::RidgeSolverName;
use bochner_table::checkpoint::Checkpoint;
use bochner_table::failure::Outcome;
use bochner_table::fit::{CheckpointRequest, Request, fit};
use bochner_table::map_request::MapRequest;
use std::fs;
use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("bochner-not-ours-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let rows: String = (0..200).map(|i| format!("{},{},{}\n", i % 13, i % 7, (i * i) % 11)).collect();
    fs::write(folder.join("t.csv"), format!("a,b,c\n{rows}")).unwrap();
    folder
}

fn fitted(folder: &Path, solver: RidgeSolverName, resume: bool) -> Outcome {
    let map = MapRequest {
        map: Some("fourier".into()),
        features: Some(12),
        length_scale: Some("1".into()),
        ..MapRequest::default()
    };
    let checkpoint = Some(CheckpointRequest { path: folder.join("state"), every: 0.0, resume });
    let request = Request { map, penalty: Some(0.1), solver, checkpoint, ..Request::default() };
    fit(folder.join("t.csv"), "c", &request).map(drop)
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_fit_removes_its_own_files_and_no_others() {
    let folder = folder("own");
    fitted(&folder, RidgeSolverName::ConjugateGradients, false).unwrap();
    assert_eq!(names(&folder), ["state", "state.passes", "t.csv"]);
    Checkpoint::remove(&folder.join("state"));
    assert_eq!(names(&folder), ["t.csv"]);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn passes_and_locks_of_somebody_else_are_refused_and_stay() {
    for (name, solver) in [
        ("state.passes", RidgeSolverName::ConjugateGradients),
        ("state.passes", RidgeSolverName::Auto),
        ("state.lock", RidgeSolverName::Auto),
    ] {
        let folder = folder("others");
        fs::write(folder.join(name), "an input, a model, a diary").unwrap();
        for resume in [false, true] {
            let error = fitted(&folder, solver, resume).unwrap_err().to_string();
            assert!(error.contains(&format!("{name} is there and not a file of a checkpoint")), "{error}");
        }
        Checkpoint::remove(&folder.join("state"));
        assert_eq!(fs::read_to_string(folder.join(name)).unwrap(), "an input, a model, a diary");
        fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn a_model_or_another_file_in_the_place_of_a_checkpoint_stays() {
    let folder = folder("model");
    let map = MapRequest {
        map: Some("fourier".into()),
        features: Some(12),
        length_scale: Some("1".into()),
        ..MapRequest::default()
    };
    let request = Request { map, penalty: Some(0.1), ..Request::default() };
    fit(folder.join("t.csv"), "c", &request).unwrap().model.save(folder.join("state")).unwrap();
    Checkpoint::remove(&folder.join("state"));
    assert_eq!(names(&folder), ["state", "t.csv"]);
    for resume in [false, true] {
        assert!(fitted(&folder, RidgeSolverName::Auto, resume).is_err());
    }
    fs::write(folder.join("state"), "something").unwrap();
    Checkpoint::remove(&folder.join("state"));
    assert_eq!(names(&folder), ["state", "t.csv"]);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn two_processes_cannot_use_one_checkpoint() {
    let folder = folder("locked");
    fitted(&folder, RidgeSolverName::ConjugateGradients, false).unwrap();
    // As another process would: locks belong to open files, not to processes.
    let lock = fs::File::create(folder.join("state.lock")).unwrap();
    lock.lock().unwrap();
    let error = fitted(&folder, RidgeSolverName::ConjugateGradients, true).unwrap_err().to_string();
    assert!(error.contains("another process is using it"), "{error}");
    Checkpoint::remove(&folder.join("state"));
    assert_eq!(names(&folder), ["state", "state.lock", "state.passes", "t.csv"]);
    drop(lock);
    // What a killed process leaves is not locked.
    fitted(&folder, RidgeSolverName::ConjugateGradients, true).unwrap();
    Checkpoint::remove(&folder.join("state"));
    assert_eq!(names(&folder), ["t.csv"]);
    fs::remove_dir_all(folder).unwrap();
}
