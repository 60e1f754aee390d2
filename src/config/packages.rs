//! What this machine needs to reach a package index, as its administrator told every program: the usual variables.

/// Certificates and proxies. Only these are passed on to the installer.
const VARIABLES: [&str; 10] = [
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
];
/// The index, where our own option doesn't name it.
const INDEX: [&str; 3] = ["UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"];

/// Those of the variables that are set.
pub(super) fn variables() -> Vec<(String, String)> {
    VARIABLES.into_iter().filter_map(|name| Some((name.to_owned(), set(name)?))).collect()
}

/// The index that the machine's package tools use.
pub(super) fn index() -> Option<String> {
    INDEX.into_iter().find_map(set)
}

fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
