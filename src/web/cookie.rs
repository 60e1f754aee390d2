//! The session cookie.

use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};

use super::site::Site;

/// Whether pages are light or dark.
const THEME: &str = "omniforge_theme";
/// As long as an unused session lives; each page sets the cookie anew.
const LIFETIME_SECONDS: u32 = 12 * 60 * 60;

/// Cookies don't tell ports apart, so the name does.
fn name(site: &Site) -> String {
    format!("omniforge_session_{}", site.port())
}

/// The session id that the browser sent.
pub(super) fn read<'a>(site: &Site, headers: &'a HeaderMap) -> Option<&'a str> {
    let name = name(site);
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// The theme that the reader chose, where it is no other than these.
pub(super) fn theme(headers: &HeaderMap) -> Option<&'static str> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let chosen = pairs.find(|(key, _)| *key == THEME).map(|(_, value)| value)?;
    ["light", "dark"].into_iter().find(|theme| *theme == chosen)
}

/// The `Set-Cookie` value that keeps the theme for a year; `auto` forgets it.
pub(super) fn keep_theme(site: &Site, theme: &str) -> HeaderValue {
    let theme = ["light", "dark"].into_iter().find(|known| *known == theme);
    let seconds = if theme.is_some() { 365 * 24 * 60 * 60 } else { 0 };
    let secure = if site.is_https() { "; Secure" } else { "" };
    let (theme, prefix) = (theme.unwrap_or_default(), site.prefix());
    let text = format!("{THEME}={theme}; Path={prefix}/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    HeaderValue::try_from(text).expect("a theme is one of ours, and the settings' URL was checked")
}

/// The `Set-Cookie` value that keeps this session.
pub(super) fn keep(site: &Site, session_id: &str) -> HeaderValue {
    write(site, session_id, LIFETIME_SECONDS)
}

/// The `Set-Cookie` value that makes the browser forget its session.
pub(super) fn forget(site: &Site) -> HeaderValue {
    write(site, "", 0)
}

fn write(site: &Site, value: &str, seconds: u32) -> HeaderValue {
    let secure = if site.is_https() { "; Secure" } else { "" };
    let (name, prefix) = (name(site), site.prefix());
    let text = format!("{name}={value}; Path={prefix}/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    HeaderValue::try_from(text).expect("a session id is letters and digits, and the settings' URL was checked")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_cookie_is_found_among_others() {
        let site = Site::new("127.0.0.1:8787".parse().unwrap(), None);
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, HeaderValue::from_static("omniforge_session_1=no; a=b=c"));
        headers.append(COOKIE, HeaderValue::from_static("x=y;omniforge_session_8787=yes"));
        assert_eq!(read(&site, &headers), Some("yes"));
        assert_eq!(read(&site, &HeaderMap::new()), None);
    }

    #[test]
    fn flags_follow_the_public_url() {
        let site = Site::new("127.0.0.1:8787".parse().unwrap(), Some("https://forge.example/x"));
        let kept = "omniforge_session_443=id; Path=/x/; Max-Age=43200; HttpOnly; SameSite=Strict; Secure";
        assert_eq!(keep(&site, "id"), kept);
    }
}
