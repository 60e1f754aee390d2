//! What all members that can stand in for one another have in common.

use std::sync::Arc;

use serde::Serialize;

use super::super::frames;
use super::super::inspection::Import;
use super::super::sandbox::spec::Spec;
use crate::model::Style;

/// The kind of a member: everything that its sandbox and its process hold before a call.
#[derive(Clone, Debug)]
pub(in super::super) struct Key {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    spec: Spec,
    style: Style,
    imports: Arc<[Import]>,
    /// The same as text: keys with the same text are the same.
    text: String,
}

/// What a harness is told that has no call yet.
#[derive(Serialize)]
struct Plan<'a> {
    preload: &'a [Import],
    style: Style,
}

impl Key {
    /// The key of members with this sandbox that serve scripts of this style, and have these modules imported.
    pub(super) fn new(spec: Spec, style: Style, imports: Arc<[Import]>) -> Self {
        let plan = Plan { style, preload: &imports };
        let text = serde_json::to_string(&(&spec, &plan)).expect("specs and plans have string keys only");
        Self { inner: Arc::new(Inner { spec, style, imports, text }) }
    }

    /// The same without imports.
    pub(super) fn bare(&self) -> Self {
        Self::new(self.inner.spec.clone(), self.inner.style, Arc::from([]))
    }

    /// Whether it has no imports.
    pub(super) fn is_bare(&self) -> bool {
        self.inner.imports.is_empty()
    }

    /// What identifies it.
    pub(super) fn text(&self) -> &str {
        &self.inner.text
    }

    /// The sandbox.
    pub(super) fn spec(&self) -> &Spec {
        &self.inner.spec
    }

    /// The frame that says what to import.
    pub(super) fn frame(&self) -> Vec<u8> {
        let plan = Plan { style: self.inner.style, preload: &self.inner.imports };
        frames::to_frame(&plan).expect("names of modules are shorter than a frame can be")
    }
}
