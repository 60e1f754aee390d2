//! What an author may ask for: PEP 508 name, extras, version specifiers and markers, and nothing else.
//!
//! Specification: <https://packaging.python.org/en/latest/specifications/dependency-specifiers/>.

use std::str::FromStr;

use pep508_rs::pep440_rs::{Operator, Version, VersionSpecifiers};
use pep508_rs::{MarkerTree, VerbatimUrl, VersionOrUrl};

/// The most requirements of one tool.
const MOST: usize = 64;
/// The most characters of one.
const LONGEST: usize = 512;
/// What a requirement is written with. Quotes mark the strings of markers; there is no way to escape one.
const PUNCTUATION: &str = " ._-[],<>=!~*+();'\"";

/// One dependency, checked and in normal form: its text holds no option, URL or path, and is safe as a line for uv.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    name: String,
    text: String,
    marker: MarkerTree,
    is_pinned: bool,
}

impl Requirement {
    /// Whether it allows exactly one version.
    pub(super) fn is_pinned(&self) -> bool {
        self.is_pinned
    }

    /// The package's normalised name, such as `typing-extensions`.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl std::fmt::Display for Requirement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// Why a requirement can't be used. `index` counts from 0, as in the JSON array.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequirementError {
    /// More than may be asked for.
    #[error("{count} requirements are more than the {MOST} that one tool may have")]
    TooMany {
        /// How many were given.
        count: usize,
    },
    /// One is wrong.
    #[error("requirement {index} (`{text}`) {problem}")]
    Wrong {
        /// Which.
        index: usize,
        /// What was given, cut when long.
        text: String,
        /// What is wrong with it, and what would be right.
        problem: String,
    },
    /// Two name the same package and may apply together.
    #[error(
        "requirements {first} and {second} both ask for `{name}`, and differently: write them as one, such as \
         `{name}>=1,<2`, or give both markers that exclude each other"
    )]
    Conflict {
        /// The earlier one.
        first: usize,
        /// The later one.
        second: usize,
        /// The package.
        name: String,
    },
    /// A `requires-python` that is no version specifier.
    #[error("`{text}` is no Python version specifier ({problem}); write it like `>=3.11` or `>=3.10,<4`")]
    Python {
        /// What was given, cut when long.
        text: String,
        /// What the parser says.
        problem: String,
    },
}

/// Parses what an author gave. The same requirement twice counts once.
///
/// # Errors
/// [`RequirementError`] names the requirement by its index, what is wrong with it and what would be right.
pub fn parse_requirements(field: &[String]) -> Result<Vec<Requirement>, RequirementError> {
    if field.len() > MOST {
        return Err(RequirementError::TooMany { count: field.len() });
    }
    let mut found: Vec<(usize, Requirement)> = Vec::new();
    for (index, text) in field.iter().enumerate() {
        let requirement = parse_requirement(text).map_err(|problem| {
            let text = excerpt(text);
            RequirementError::Wrong { index, text, problem }
        })?;
        let same_name = || found.iter().filter(|(_, other)| other.name == requirement.name);
        if same_name().any(|(_, other)| *other == requirement) {
            continue;
        }
        if let Some((first, _)) = same_name().find(|(_, other)| !other.marker.is_disjoint(&requirement.marker)) {
            return Err(RequirementError::Conflict { first: *first, second: index, name: requirement.name });
        }
        found.push((index, requirement));
    }
    Ok(found.into_iter().map(|(_, requirement)| requirement).collect())
}

/// Whether a Python of this version meets a `requires-python`.
///
/// # Errors
/// [`RequirementError::Python`] when `spec` is no specifier, or the version no version.
pub fn check_requires_python(spec: &str, version: &str) -> Result<bool, RequirementError> {
    let wrong = |problem: String| RequirementError::Python { text: excerpt(spec), problem };
    // The parser's messages point into the text by characters where they mean bytes.
    if !spec.is_ascii() || spec.len() > LONGEST {
        return Err(wrong("it must be short and plain ASCII".to_owned()));
    }
    let specifiers = VersionSpecifiers::from_str(spec).map_err(|error| wrong(first_line(&error.to_string())))?;
    let version = Version::from_str(version).map_err(|error| wrong(first_line(&error.to_string())))?;
    Ok(specifiers.contains(&version))
}

/// The normalised form of a package's name; `None` when it is no name.
pub(super) fn normalised_name(name: &str) -> Option<String> {
    pep508_rs::PackageName::from_str(name).ok().map(|name| name.to_string())
}

/// Parses one requirement; the error completes the sentence "requirement N …".
pub(super) fn parse_requirement(text: &str) -> Result<Requirement, String> {
    check_characters(text)?;
    let mut warnings = Vec::new();
    let mut report = |_kind, warning: String| warnings.push(warning);
    let parsed = pep508_rs::Requirement::<VerbatimUrl>::parse_reporter(text, "/", &mut report)
        .map_err(|error| format!("can't be understood: {}", error.message))?;
    if let Some(warning) = warnings.first() {
        return Err(format!("has a marker that can't be used: {}", first_line(warning)));
    }
    let is_pinned = match &parsed.version_or_url {
        Some(VersionOrUrl::Url(_)) => return Err(NO_URL.to_owned()),
        Some(VersionOrUrl::VersionSpecifier(specifiers)) => {
            specifiers.len() == 1 && specifiers.iter().all(|specifier| *specifier.operator() == Operator::Equal)
        }
        None => false,
    };
    Ok(Requirement { name: parsed.name.to_string(), text: parsed.to_string(), marker: parsed.marker, is_pinned })
}

const NO_URL: &str =
    "holds a URL or path; only names of packages on the server's index are taken, such as `httpx>=0.27`";
const NO_OPTION: &str = "is an option, not a package; the index and its options are settings of the server";

/// Refuses what no requirement needs, before any parser sees it.
fn check_characters(text: &str) -> Result<(), String> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err("is empty; write a package's name, such as `httpx>=0.27`".to_owned());
    }
    if text.len() > LONGEST {
        return Err(format!("has {} bytes; at most {LONGEST} are allowed", text.len()));
    }
    if trimmed.starts_with('-') || text.contains("--") {
        return Err(NO_OPTION.to_owned());
    }
    if text.contains(['@', '/', '\\', ':']) || trimmed.starts_with('.') {
        return Err(NO_URL.to_owned());
    }
    if let Some(found) = text.chars().find(|found| !found.is_ascii_alphanumeric() && !PUNCTUATION.contains(*found)) {
        return Err(format!("holds {found:?}, which no requirement needs; write it like `httpx[http2]>=0.27,<1`"));
    }
    // Means the extras of the package that is being described, and there is none.
    let marker = text.split_once(';').map_or("", |(_, marker)| marker);
    if marker.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').any(|word| word == "extra") {
        return Err("uses the marker `extra`, which has no meaning here; ask for extras as `package[extra]`".to_owned());
    }
    Ok(())
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim().to_owned()
}

/// The beginning of a text, for messages.
fn excerpt(text: &str) -> String {
    let shown: String = text.chars().take(80).flat_map(char::escape_debug).collect();
    if text.chars().nth(80).is_some() { format!("{shown}…") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(field: &[&str]) -> Result<Vec<String>, String> {
        let field: Vec<String> = field.iter().map(|&text| text.to_owned()).collect();
        let parsed = parse_requirements(&field).map_err(|error| error.to_string())?;
        Ok(parsed.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn requirements_come_out_in_normal_form() {
        let given = ["Typing.Extensions", " httpx[http2] >= 0.27 , <1", "numpy (>=1.26)", "six==1.*"];
        assert_eq!(parse(&given).unwrap(), ["typing-extensions", "httpx[http2]>=0.27,<1", "numpy>=1.26", "six==1.*"]);
        assert_eq!(parse(&["six", "SIX"]).unwrap(), ["six"]);
        let apart = ["six<1.17 ; python_version < '3.9'", "six>=1.17 ; python_version >= '3.9'"];
        assert_eq!(parse(&apart).unwrap().len(), 2);
        assert_eq!(parse(&[]).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn what_is_no_plain_requirement_is_refused_by_index() {
        let hostile = [
            ("", "is empty"),
            ("  ", "is empty"),
            ("--index-url https://evil.example/simple", "is an option"),
            ("-r /etc/passwd", "is an option"),
            ("-e .", "is an option"),
            ("six --hash=sha256:00", "is an option"),
            ("six ; os_name == 'a --index-url x'", "is an option"),
            ("six @ https://evil.example/six.whl", "URL or path"),
            ("six@file:///etc/passwd", "URL or path"),
            ("git+https://evil.example/x.git", "URL or path"),
            ("./local", "URL or path"),
            (".", "URL or path"),
            ("../up", "URL or path"),
            ("/etc/passwd", "URL or path"),
            ("C:\\evil", "URL or path"),
            ("npm:six", "URL or path"),
            ("six\n--index-url", "is an option"),
            ("six\nidna", "'\\n'"),
            ("six\0", "'\\0'"),
            ("six # comment", "'#'"),
            ("six${HOME}", "'$'"),
            ("`id`", "'`'"),
            ("six; os_name == 'é'", "'é'"),
            ("$(id)", "'$'"),
            ("six;", "can't be understood"),
            ("six==", "can't be understood"),
            ("six=1", "can't be understood"),
            ("six>1 idna", "can't be understood"),
            ("[six]", "can't be understood"),
            ("six ; nonsense == 'x'", "can't be understood"),
            ("six ; extra == 'x'", "marker `extra`"),
            ("six ; os_name ~= 'posix'", "marker"),
            ("six ; ((((((((((", "can't be understood"),
            ("six-", "can't be understood"),
            ("*", "can't be understood"),
        ];
        for (text, problem) in hostile {
            let error = parse(&["idna", text]).unwrap_err();
            assert!(error.starts_with("requirement 1 (`"), "{text:?}: {error}");
            assert!(error.contains(problem), "{text:?}: {error}");
            assert!(!error.contains('\n'), "{text:?}: {error}");
        }
        assert!(parse(&[&"a".repeat(600)]).unwrap_err().contains("600 bytes"));
        assert!(parse(&["six"; 65]).unwrap_err().contains("65 requirements"));
        let error = parse(&["Six<2", "idna", "six>=1"]).unwrap_err();
        assert!(error.starts_with("requirements 0 and 2 both ask for `six`"), "{error}");
    }

    #[test]
    fn a_hostile_marker_stays_cheap() {
        let parts: Vec<String> = (0..40).map(|n| format!("'{n}' in os_name")).collect();
        let pairs: Vec<String> = parts.chunks(2).map(|pair| pair.join(" and ")).collect();
        let mut text = format!("six ; {}", pairs.join(" or "));
        text.truncate(LONGEST);
        let started = std::time::Instant::now();
        // Cut somewhere, it may or may not parse.
        let _either = parse(&[&text]);
        assert!(started.elapsed() < std::time::Duration::from_secs(2));
    }

    #[test]
    fn python_versions_are_compared_as_versions() {
        assert_eq!(check_requires_python(">=3.9,<4", "3.11.2"), Ok(true));
        assert_eq!(check_requires_python(">=3.12", "3.11.2"), Ok(false));
        assert_eq!(check_requires_python("==3.1.*", "3.11.2"), Ok(false));
        for wrong in ["three", ">=3.é", ">=", "3.11", "../x"] {
            let error = check_requires_python(wrong, "3.11.2").unwrap_err().to_string();
            assert!(error.contains("no Python version specifier"), "{error}");
        }
    }
}
