//! The files that pages load: embedded, named by their content, kept by browsers for good.

use std::sync::{Arc, LazyLock};

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};

use super::{Web, WebError};

/// An embedded file.
pub(super) struct Asset {
    /// Its name in URLs, with the hash of its content.
    pub(super) name: String,
    content_type: &'static str,
    body: &'static str,
}

impl Asset {
    fn new(stem: &str, ending: &str, content_type: &'static str, body: &'static str) -> Self {
        let hash = blake3::hash(body.as_bytes()).to_hex();
        Self { name: format!("{stem}.{}.{ending}", &hash[..16]), content_type, body }
    }
}

/// The style sheet.
pub(super) static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("omniforge", "css", "text/css; charset=utf-8", include_str!("../../assets/omniforge.css"))
});

/// The icon of the browser's tab.
pub(super) static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("icon", "svg", "image/svg+xml", include_str!("../../assets/icon.svg")));

/// `GET /assets/{name}`.
pub(super) async fn asset(State(web): State<Arc<Web>>, Path(name): Path<String>) -> Result<Response, WebError> {
    let asset = [&*STYLE, &*ICON].into_iter().find(|asset| asset.name == name);
    let Some(asset) = asset else {
        return Err(WebError::NotFound(format!("{}/assets/{name}", web.site.prefix())));
    };
    let headers = [
        (CONTENT_TYPE, asset.content_type),
        (CACHE_CONTROL, "public, max-age=31536000, immutable"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    Ok((headers, asset.body).into_response())
}
