//! What stands around every page: files, theme, menu, who is here.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use http::HeaderMap;

use super::assets::{ICON, STYLE};
use super::{Visitor, Web, cookie};
use crate::model::{Caller, Scope};
use crate::tools::Tools;

/// How long the counts of the menu are kept where the catalogue didn't change.
const COUNTED_FOR: Duration = Duration::from_secs(10);

/// What stands around a page.
pub(super) struct Frame {
    /// What stands before every path.
    pub(super) prefix: String,
    pub(super) style: String,
    pub(super) icon: String,
    /// `light` or `dark` where the reader chose one.
    pub(super) theme: Option<&'static str>,
    /// What style elements made by scripts must carry.
    pub(super) nonce: String,
    /// The host that the reader knows the server by.
    pub(super) host: String,
    /// The reader's name.
    pub(super) name: String,
    /// What every form carries.
    pub(super) csrf: String,
    /// Whether a session stands behind it, rather than a server that asks nobody.
    pub(super) signed_in: bool,
    /// Whether the reader may change tools.
    pub(super) may_author: bool,
    here: &'static str,
    /// How many tools there are.
    pub(super) tools: u64,
    /// How many versions wait for a person.
    pub(super) waiting: usize,
}

impl Frame {
    /// Around a page for anybody: no menu.
    pub(super) fn bare(web: &Web, headers: &HeaderMap) -> Self {
        let asset = |name: &str| format!("{}/assets/{name}", web.site.prefix());
        let mut nonce = [0; 16];
        getrandom::fill(&mut nonce).expect("the kernel's random numbers do not fail once it is up");
        Self {
            prefix: web.site.prefix().to_owned(),
            style: asset(&STYLE.name),
            icon: asset(&ICON.name),
            theme: cookie::theme(headers),
            nonce: STANDARD_NO_PAD.encode(nonce),
            host: web.site.authority(headers),
            name: String::new(),
            csrf: String::new(),
            signed_in: false,
            may_author: false,
            here: "",
            tools: 0,
            waiting: 0,
        }
    }

    /// Around a page of the menu; `here` is the page's name there.
    pub(super) async fn new(web: &Web, headers: &HeaderMap, visitor: &Visitor, here: &'static str) -> Self {
        let (tools, waiting) = web.counts.get(&web.state.tools, &visitor.caller).await;
        Self {
            name: visitor.caller.principal_name.clone(),
            csrf: visitor.csrf.clone(),
            signed_in: visitor.signed_in,
            may_author: visitor.caller.scopes.has(Scope::Author),
            here,
            tools,
            waiting,
            ..Self::bare(web, headers)
        }
    }

    pub(super) fn at(&self, page: &str) -> bool {
        self.here == page
    }

    /// Whether this theme is the chosen one; `auto` is the system's.
    pub(super) fn themed(&self, theme: &str) -> bool {
        self.theme.unwrap_or("auto") == theme
    }
}

/// The numbers in the menu, counted anew when the catalogue has changed.
#[derive(Default)]
pub(super) struct Counts {
    known: Mutex<HashMap<(String, bool), Counted>>,
}

struct Counted {
    generation: u64,
    at: Instant,
    counts: (u64, usize),
}

impl Counts {
    /// How many tools this caller sees, and how much waits for them. Zero where that can't be read: the page itself says so.
    async fn get(&self, tools: &Tools, caller: &Caller) -> (u64, usize) {
        let key = (caller.principal.0.clone(), caller.scopes.has(Scope::Approve));
        let generation = tools.store.catalog_generation().await.unwrap_or_default();
        if let Some(known) = self.known().get(&key)
            && known.generation == generation
            && known.at.elapsed() < COUNTED_FOR
        {
            return known.counts;
        }
        let total = tools.overview(caller, 1).await.map_or(0, |(_, total)| total);
        let waiting = tools.waiting(caller).await.map_or(0, |waiting| waiting.len());
        let counts = (total, waiting);
        let mut known = self.known();
        // One entry a principal: few, but names of deleted ones need not stay for ever.
        if known.len() > 1000 {
            known.clear();
        }
        known.insert(key, Counted { generation, at: Instant::now(), counts });
        counts
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<(String, bool), Counted>> {
        self.known.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
