//! Saved content through the real door: resources, prompts and skills.

mod resources;
