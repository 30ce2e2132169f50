//! Downloads that continue where they stopped and are believed only when their checksum is right.

use crate::known::{KnownFile, Verdict, check};
use bochner::persist::put_in_place;
use bochner_table::failure::{Failure, Outcome};
use bochner_table::interrupt;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;
use ureq::http::header::{CONTENT_RANGE, LOCATION};
use ureq::http::uri::{Authority, Scheme, Uri};

/// Redirections that are followed.
const REDIRECTIONS: usize = 10;

/// An address that may be fetched, and whether it is on this machine: all others are encrypted. Names and passwords in it, which
/// may be mistaken for a machine, are refused.
fn checked(address: &str) -> Result<(Uri, bool), &'static str> {
    let uri: Uri = address.parse().map_err(|_| "this is not an address")?;
    let authority = uri.authority().map_or("", Authority::as_str);
    if authority.contains('@') {
        return Err("addresses with a name or a password before an @ are not fetched");
    }
    let local = matches!(uri.host(), Some("127.0.0.1" | "localhost" | "[::1]"));
    match uri.scheme() {
        Some(scheme) if *scheme == Scheme::HTTPS || *scheme == Scheme::HTTP && local => Ok((uri, local)),
        _ => Err("only https:// addresses are fetched"),
    }
}

/// Where a redirection leads, which must not be from elsewhere to this machine.
fn redirected(from: &(Uri, bool), to: &str) -> Result<(Uri, bool), String> {
    let whole = match (from.0.scheme_str().zip(from.0.authority()), to.strip_prefix('/')) {
        (Some((scheme, _)), Some(rest)) if rest.starts_with('/') => format!("{scheme}:{to}"),
        (Some((scheme, authority)), Some(_)) => format!("{scheme}://{authority}{to}"),
        _ => to.to_owned(),
    };
    let told = |why: &str| format!("the server redirects to {whole}: {why}");
    match checked(&whole) {
        Ok((_, true)) if !from.1 => Err(told("this machine is not asked on behalf of another")),
        Ok(found) => Ok(found),
        Err(why) => Err(told(why)),
    }
}

/// Downloads `known` from `url` to `target`; what an earlier attempt has left behind is continued.
///
/// Bytes gather in a hidden neighbour of the target, which gets its name when size and checksum are right.
pub fn fetch(url: &str, target: &Path, known: &KnownFile, mut seen: impl FnMut(u64)) -> Outcome {
    let told = |what: String| Failure::Failed(format!("{url}: {what}"));
    let mut address = checked(url).map_err(|why| told(why.into()))?;
    let part = target.with_file_name(format!(".{}.download", known.name));
    let write_failed = |e: std::io::Error| Failure::Failed(format!("cannot write {}: {e}", part.display()));
    let mut have = match fs::symlink_metadata(&part) {
        Ok(found) if found.is_file() => found.len(),
        Ok(_) => return Err(write_failed(std::io::Error::other("it is there and not a file; remove it"))),
        Err(_) => 0,
    };
    if have > known.bytes {
        fs::remove_file(&part).map_err(write_failed)?;
        have = 0;
    }
    if have < known.bytes {
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .timeout_connect(Some(Duration::from_secs(30)))
            .timeout_recv_response(Some(Duration::from_secs(60)))
            .http_status_as_error(false)
            .max_redirects(0)
            .user_agent(concat!("bochner/", env!("CARGO_PKG_VERSION")))
            .build()
            .into();
        let mut redirections = 0;
        let response = loop {
            let mut request = agent.get(&address.0);
            if have > 0 {
                request = request.header("Range", format!("bytes={have}-"));
            }
            let response = request.call().map_err(|e| match e {
                ureq::Error::Io(e) => Failure::Failed(format!("{url} could not be reached: {e}")),
                e => Failure::Failed(format!("{url} could not be reached: {e}")),
            })?;
            let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok());
            let Some(to) = to.filter(|_| response.status().is_redirection()) else { break response };
            redirections += 1;
            if redirections > REDIRECTIONS {
                return Err(told(format!("the server redirects more than {REDIRECTIONS} times")));
            }
            address = redirected(&address, to).map_err(told)?;
        };
        let range = response.headers().get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
        let continued = range.is_some_and(|range| range.starts_with(&format!("bytes {have}-")));
        match response.status().as_u16() {
            206 if continued => {}
            200 => have = 0,
            status => return Err(told(format!("the server answered with status {status}"))),
        }
        let mut file = File::options().create(true).append(true).open(&part).map_err(write_failed)?;
        file.set_len(have).map_err(write_failed)?;
        let mut body = response.into_body().into_reader();
        let mut buffer = vec![0; 1 << 16];
        loop {
            // What has arrived stays for the next attempt.
            interrupt::check()?;
            let n = body.read(&mut buffer).map_err(|e| told(format!("{e}; the same command continues from here")))?;
            if n == 0 {
                break;
            }
            have += n as u64;
            if have > known.bytes {
                drop(file);
                fs::remove_file(&part).map_err(write_failed)?;
                return Err(told(format!("the file is longer than the {} bytes expected", known.bytes)));
            }
            file.write_all(&buffer[..n]).map_err(write_failed)?;
            seen(have);
        }
        file.sync_all().map_err(write_failed)?;
        if have < known.bytes {
            let bytes = known.bytes;
            return Err(told(format!(
                "the connection ended after {have} of {bytes} bytes; the same command continues"
            )));
        }
    }
    match check(&part, known)? {
        Verdict::Intact => put_in_place(&part, target).map_err(write_failed),
        _ => {
            fs::remove_file(&part).map_err(write_failed)?;
            Err(told("the checksum of the download is wrong; it was thrown away".into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufRead;
    use std::net::TcpListener;
    use std::path::PathBuf;
    use std::sync::{Arc, Mutex};

    /// How the server behaves.
    #[derive(Clone, Copy, PartialEq)]
    enum Behavior {
        /// Answers ranges with ranges.
        Polite,
        /// Closes the connection after so many bytes of the file.
        Cut(usize),
        /// Sends the whole file, whatever is asked for.
        Deaf,
        Missing,
        /// Names another address.
        Redirect(&'static str),
    }

    /// Serves `contents` once per entry of `behaviors`; remembers the ranges that were asked for.
    fn serve(contents: Vec<u8>, behaviors: Vec<Behavior>) -> (String, Arc<Mutex<Vec<Option<String>>>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/file.bin", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let ranges = Arc::clone(&asked);
        std::thread::spawn(move || {
            for behavior in behaviors {
                let (mut stream, _) = listener.accept().unwrap();
                let mut range = None;
                let reader = std::io::BufReader::new(stream.try_clone().unwrap());
                for line in reader.lines() {
                    let line = line.unwrap();
                    if line.is_empty() {
                        break;
                    }
                    if let Some(value) = line.to_ascii_lowercase().strip_prefix("range: bytes=") {
                        range = Some(value.trim_end_matches('-').to_owned());
                    }
                }
                ranges.lock().unwrap().push(range.clone());
                let start: usize = range.and_then(|r| r.parse().ok()).unwrap_or(0);
                let total = contents.len();
                let (head, body) = match behavior {
                    Behavior::Missing => ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(), Vec::new()),
                    Behavior::Redirect(to) => (
                        format!(
                            "HTTP/1.1 302 Found\r\nLocation: {to}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
                        ),
                        Vec::new(),
                    ),
                    Behavior::Deaf => (format!("HTTP/1.1 200 OK\r\nContent-Length: {total}\r\n\r\n"), contents.clone()),
                    _ => {
                        let body = contents[start..].to_vec();
                        let range = format!("Content-Range: bytes {start}-{}/{total}\r\n", total - 1);
                        let status = if start > 0 { "206 Partial Content" } else { "200 OK" };
                        let head = format!("HTTP/1.1 {status}\r\n{range}Content-Length: {}\r\n\r\n", body.len());
                        (head, body)
                    }
                };
                let body = if let Behavior::Cut(len) = behavior { body[..len.min(body.len())].to_vec() } else { body };
                // A client that has heard enough may close the connection.
                let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
            }
        });
        (address, asked)
    }

    fn contents() -> Vec<u8> {
        (0..200_000u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect()
    }

    fn known(contents: &[u8]) -> KnownFile {
        let sha256 = bochner_table::checkpoint::hash(contents);
        KnownFile { name: "file.bin".into(), bytes: contents.len() as u64, sha256 }
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("bochner-fetch-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_download_continues_where_it_was_cut() {
        let folder = folder("cut");
        let target = folder.join("file.bin");
        let all = contents();
        let (url, asked) = serve(all.clone(), vec![Behavior::Cut(300_000), Behavior::Cut(100_000), Behavior::Polite]);
        for _ in 0..2 {
            let error = fetch(&url, &target, &known(&all), |_| {}).unwrap_err().to_string();
            assert!(error.contains("the same command continues"), "{error}");
            assert!(!target.exists(), "half a file never has the name of a whole one");
        }
        fetch(&url, &target, &known(&all), |_| {}).unwrap();
        assert!(fs::read(&target).unwrap() == all);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing else is left");
        let asked = asked.lock().unwrap();
        assert_eq!(asked[0], None);
        assert_eq!(asked[2].as_deref(), Some("400000"), "{asked:?}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_server_that_cannot_continue_starts_again() {
        let folder = folder("deaf");
        let target = folder.join("file.bin");
        let all = contents();
        let (url, _) = serve(all.clone(), vec![Behavior::Cut(1000), Behavior::Deaf]);
        assert!(fetch(&url, &target, &known(&all), |_| {}).is_err());
        fetch(&url, &target, &known(&all), |_| {}).unwrap();
        assert!(fs::read(&target).unwrap() == all);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn wrong_bytes_are_thrown_away() {
        let folder = folder("wrong");
        let target = folder.join("file.bin");
        let all = contents();
        let mut other = all.clone();
        other[12_345] ^= 1;
        let (url, _) = serve(other, vec![Behavior::Polite]);
        let error = fetch(&url, &target, &known(&all), |_| {}).unwrap_err().to_string();
        assert!(error.contains("checksum"), "{error}");
        let (url, _) = serve([all.clone(), vec![0]].concat(), vec![Behavior::Polite]);
        let error = fetch(&url, &target, &known(&all), |_| {}).unwrap_err().to_string();
        assert!(error.contains("longer than"), "{error}");
        let (url, _) = serve(all.clone(), vec![Behavior::Missing]);
        let error = fetch(&url, &target, &known(&all), |_| {}).unwrap_err().to_string();
        assert!(error.contains("status 404"), "{error}");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_server_that_is_not_there_is_named() {
        // A port that was free a moment ago.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let url = format!("http://127.0.0.1:{port}/file.bin");
        let error = fetch(&url, &folder("nobody").join("file.bin"), &known(b"x"), |_| {}).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{url} could not be reached: ")) && !error.contains("io:"), "{error}");
    }

    #[test]
    fn only_encrypted_connections_leave_the_machine() {
        let error = fetch("http://example.com/file.bin", Path::new("x"), &known(b"x"), |_| {}).unwrap_err();
        assert!(error.to_string().contains("only https://"), "{error}");
    }

    #[test]
    fn what_only_begins_like_a_local_address_is_not_one() {
        for (address, why) in [
            ("http://127.0.0.1:80@elsewhere.example/x", "before an @"),
            ("http://localhost:pass@elsewhere.example/x", "before an @"),
            ("https://user@elsewhere.example/x", "before an @"),
            ("http://localhost.elsewhere.example/x", "only https://"),
            ("http://127.0.0.1.elsewhere.example/x", "only https://"),
            ("ftp://localhost/x", "only https://"),
            ("file:///etc/passwd", "not an address"),
            ("localhost", "only https://"),
            ("http://", "not an address"),
            ("", "not an address"),
        ] {
            let error = fetch(address, Path::new("x"), &known(b"x"), |_| {}).unwrap_err().to_string();
            assert!(error.contains(why), "{address}: {error}");
        }
        for (address, local) in [
            ("https://example.com/x", false),
            ("http://127.0.0.1:8000/x", true),
            ("http://localhost/x", true),
            ("http://[::1]:80/x", true),
            ("HTTPS://localhost/x", true),
        ] {
            assert_eq!(checked(address).map(|(_, local)| local), Ok(local), "{address}");
        }
    }

    #[test]
    fn redirections_are_judged_as_the_first_address_is() {
        let (far, near) = (checked("https://example.com/a/b").unwrap(), checked("http://localhost:80/a").unwrap());
        let to = |from, to| redirected(from, to).map(|(uri, _)| uri.to_string());
        assert_eq!(to(&far, "/c").unwrap(), "https://example.com/c");
        assert_eq!(to(&far, "//other.example/c").unwrap(), "https://other.example/c");
        assert_eq!(to(&near, "/c").unwrap(), "http://localhost:80/c");
        assert_eq!(to(&near, "https://example.com/c").unwrap(), "https://example.com/c");
        for wrong in ["http://example.com/c", "http://localhost/c", "https://localhost/c", "https://a@b.example/c", "c"]
        {
            assert!(to(&far, wrong).unwrap_err().contains("redirects to"), "{wrong}");
        }
    }

    #[test]
    fn a_server_that_redirects_elsewhere_is_not_followed() {
        let folder = folder("redirected");
        let (target, all) = (folder.join("file.bin"), contents());
        let (url, _) = serve(
            all.clone(),
            vec![Behavior::Redirect("http://example.com/x"), Behavior::Redirect("/y"), Behavior::Polite],
        );
        let error = fetch(&url, &target, &known(&all), |_| {}).unwrap_err().to_string();
        assert!(error.contains("redirects to http://example.com/x: only https://"), "{error}");
        fetch(&url, &target, &known(&all), |_| {}).unwrap();
        assert!(fs::read(&target).unwrap() == all);
        fs::remove_dir_all(folder).unwrap();
    }
}
