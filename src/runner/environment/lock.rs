//! The lock of an environment: what the resolver fixed, as text that holds nothing but pinned names and their hashes.

use rustix::system::uname;

use super::error::EnvironmentError;
use super::requirement::{normalised_name, parse_requirement};

/// Raised when environments are built in another way, so that old ones aren't taken for new ones.
const FORMAT: &str = "1 target wheels unchecked-hash-bytecode";

/// One pinned package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pin {
    /// The normalised name.
    pub(super) name: String,
    requirement: String,
    hashes: Vec<String>,
}

/// Reads a lock in the form that uv writes and [`render`] does.
///
/// # Errors
/// [`EnvironmentError::BadLock`] for anything but pins with hashes: a lock decides what is installed.
pub(super) fn parse(text: &str) -> Result<Vec<Pin>, EnvironmentError> {
    let joined = text.replace("\\\n", " ");
    let lines = joined.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| parse_pin(line).map_err(|problem| EnvironmentError::BadLock { problem })).collect()
}

fn parse_pin(line: &str) -> Result<Pin, String> {
    let mut parts = line.split(" --hash=");
    let requirement = parts.next().unwrap_or_default().trim();
    let hashes: Vec<String> = parts.map(|hash| hash.trim().to_owned()).collect();
    if hashes.is_empty() || !hashes.iter().all(|hash| is_hash(hash)) {
        return Err(format!("`{requirement}` has no usable hash"));
    }
    let parsed = parse_requirement(requirement).map_err(|problem| format!("`{requirement}` {problem}"))?;
    if !parsed.is_pinned() {
        return Err(format!("`{requirement}` is no pinned version"));
    }
    Ok(Pin { name: parsed.name().to_owned(), requirement: parsed.to_string(), hashes })
}

fn is_hash(text: &str) -> bool {
    let Some((algorithm, digest)) = text.split_once(':') else { return false };
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return false,
    };
    digest.len() == length && digest.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// The lock as text.
pub(super) fn render(pins: &[Pin]) -> String {
    let pin = |pin: &Pin| {
        let hashes: String = pin.hashes.iter().map(|hash| format!(" \\\n    --hash={hash}")).collect();
        format!("{}{hashes}\n", pin.requirement)
    };
    pins.iter().map(pin).collect()
}

/// The packages that an allow-list doesn't name; an empty list allows all.
pub(super) fn not_allowed<'a>(names: impl Iterator<Item = &'a str>, allow: &[String]) -> Vec<String> {
    let allowed: Vec<String> = allow.iter().filter_map(|name| normalised_name(name)).collect();
    names.filter(|name| !allow.is_empty() && !allowed.iter().any(|other| other == name)).map(str::to_owned).collect()
}

/// The name of an environment: what is installed, for which interpreter, where and how.
pub(super) fn environment_hash(lock: &str, interpreter_version: &str, interpreter_path: &str) -> String {
    let system = uname();
    let mut hasher = blake3::Hasher::new();
    let (name, machine) = (system.sysname().to_bytes(), system.machine().to_bytes());
    let parts = [FORMAT.as_bytes(), name, machine, interpreter_version.as_bytes(), interpreter_path.as_bytes()];
    for part in parts.into_iter().chain([lock.as_bytes()]) {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274";

    #[test]
    fn a_lock_survives_reading_and_writing() {
        let text = format!(
            "anyio==4.9.0 ; python_full_version >= '3.9' \\\n    --hash=sha256:{DIGEST} \\\n    --hash=sha256:{DIGEST}\n\
             pytz==1!2024.1.post1 \\\n    --hash=sha256:{DIGEST}\n"
        );
        let pins = parse(&text).unwrap();
        assert_eq!(pins.iter().map(|pin| pin.name.as_str()).collect::<Vec<_>>(), ["anyio", "pytz"]);
        assert_eq!(render(&pins), text);
        assert_eq!(parse("# nothing\n\n").unwrap(), []);
    }

    #[test]
    fn what_is_no_pin_with_hashes_is_refused() {
        for text in [
            "six==1.17.0".to_owned(),
            "six==1.17.0 --hash=md5:00".to_owned(),
            "six==1.17.0 --hash=sha256:zz".to_owned(),
            format!("six --hash=sha256:{DIGEST}"),
            format!("six>=1 --hash=sha256:{DIGEST}"),
            format!("six==1.* --hash=sha256:{DIGEST}"),
            format!("--index-url https://evil.example --hash=sha256:{DIGEST}"),
            format!("six @ https://evil.example/six.whl --hash=sha256:{DIGEST}"),
            format!("six==1.17.0 --hash=sha256:{DIGEST} --index-url=x"),
        ] {
            assert!(matches!(parse(&text), Err(EnvironmentError::BadLock { .. })), "{text}");
        }
    }

    #[test]
    fn allow_lists_compare_normalised_names() {
        let allow = ["Typing_Extensions".to_owned()];
        assert_eq!(not_allowed(["typing-extensions", "six"].into_iter(), &allow), ["six"]);
        assert!(not_allowed(["six"].into_iter(), &[]).is_empty());
    }

    #[test]
    fn every_part_counts_for_the_hash() {
        let hash = environment_hash("lock", "3.11.2", "/usr/bin/python3.11");
        assert_eq!(hash.len(), 64);
        for (lock, version, path) in [
            ("lock2", "3.11.2", "/usr/bin/python3.11"),
            ("lock", "3.11.3", "/usr/bin/python3.11"),
            ("lock", "3.11.2", "/opt/python3.11"),
        ] {
            assert_ne!(environment_hash(lock, version, path), hash);
        }
    }
}
