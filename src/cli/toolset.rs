//! `omniforge toolset`: named groups of tools on a data directory, also beside a running server.

use anyhow::bail;
use serde_json::json;

use super::token::Place;
use super::{plain, runtime};
use crate::auth::Auth;
use crate::model::{Caller, ContentKind, Scope, Scopes};
use crate::store::Store;
use crate::tools::{NamedContent, ToolsetDraft, ToolsetView, Toolsets};

/// What to do with toolsets.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// List the toolsets
    List(List),
    /// Show a toolset and what is inside
    Show(Named),
    /// Make a toolset, served at /mcp/NAME
    Create(Write),
    /// Change what is named of a toolset; the rest stays
    Update(Write),
    /// Delete a toolset; its tools stay
    Delete(Named),
}

/// All toolsets.
#[derive(Debug, clap::Args)]
pub struct List {
    #[command(flatten)]
    place: Place,
}

/// One toolset.
#[derive(Debug, clap::Args)]
pub struct Named {
    /// Its name
    name: String,
    #[command(flatten)]
    place: Place,
}

/// What a toolset is to be.
#[derive(Debug, clap::Args)]
pub struct Write {
    /// Its name: a letter, then letters, digits, _ or -
    name: String,
    /// What it is for
    #[arg(long)]
    description: Option<String>,
    /// What its clients are told when they connect
    #[arg(long)]
    instructions: Option<String>,
    /// A tool that is inside; all those that are, by hand
    #[arg(long = "tool", value_name = "NAME")]
    tools: Option<Vec<String>>,
    /// A resource, prompt or skill that is inside, as in prompt:NAME
    #[arg(long = "content", value_name = "KIND:NAME")]
    content: Option<Vec<String>>,
    /// A tag: what carries it is inside
    #[arg(long = "tag", value_name = "TAG")]
    tags: Option<Vec<String>>,
    /// Whether everything is inside
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    everything: Option<bool>,
    /// Whether two tools alone are listed, one that searches and one that calls
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    search: Option<bool>,
    /// Whether schemas are served in their plainest form
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    portable: Option<bool>,
    /// For the principal `local`, whom `omniforge stdio` serves, in place of the owner
    #[arg(long)]
    local: bool,
    #[command(flatten)]
    place: Place,
}

impl Write {
    fn draft(&self) -> anyhow::Result<ToolsetDraft> {
        let content = self.content.as_ref().map(|content| content.iter().map(|text| named(text)).collect());
        Ok(ToolsetDraft {
            description: self.description.clone(),
            instructions: self.instructions.clone(),
            tags: self.tags.clone(),
            everything: self.everything,
            search: self.search,
            portable: self.portable,
            tools: self.tools.clone(),
            content: content.transpose()?,
        })
    }
}

fn named(text: &str) -> anyhow::Result<NamedContent> {
    let kinds = [ContentKind::Resource, ContentKind::Prompt, ContentKind::Skill];
    let found = text.split_once(':').and_then(|(word, name)| {
        let kind = kinds.into_iter().find(|kind| kind.as_str() == word)?;
        Some(NamedContent { kind, name: name.to_owned() })
    });
    found.ok_or_else(|| anyhow::anyhow!("`--content {text}`: write resource:URI, prompt:NAME or skill:NAME"))
}

/// Does what was asked.
///
/// # Errors
/// What was wrong and what would be right.
pub fn run(command: Command) -> anyhow::Result<()> {
    runtime()?.block_on(async {
        match command {
            Command::List(list) => self::list(list).await,
            Command::Show(named) => show(named).await,
            Command::Create(write) => self::write(write, false).await,
            Command::Update(write) => self::write(write, true).await,
            Command::Delete(named) => delete(named).await,
        }
    })
}

async fn open(place: &Place) -> anyhow::Result<(Store, Toolsets, Caller)> {
    let store = place.store().await?;
    let caller = Auth::owner_at(&store, Scopes::of(&[Scope::Admin])).await?;
    Ok((store.clone(), Toolsets::new(store), caller))
}

async fn list(list: List) -> anyhow::Result<()> {
    let (store, toolsets, caller) = open(&list.place).await?;
    let views = toolsets.list(&caller).await?;
    store.close().await?;
    if list.place.json {
        println!("{}", json!(views));
        return Ok(());
    }
    for view in &views {
        println!("{}  {} tool(s)  {}", view.name, view.all_tools.len(), plain(&view.settings.description));
    }
    if views.is_empty() {
        println!("There are no toolsets. `omniforge toolset create NAME --tag TAG` makes one.");
    }
    Ok(())
}

async fn show(named: Named) -> anyhow::Result<()> {
    let (store, toolsets, caller) = open(&named.place).await?;
    let view = toolsets.get(&caller, &named.name).await;
    store.close().await?;
    print(&view?, named.place.json);
    Ok(())
}

fn print(view: &ToolsetView, in_json: bool) {
    if in_json {
        println!("{}", json!(view));
        return;
    }
    println!("{}  served at {}", view.name, view.path);
    let settings = &view.settings;
    for (what, said) in [("for", &settings.description), ("tells", &settings.instructions)] {
        if !said.is_empty() {
            println!("  {what}: {}", plain(said));
        }
    }
    for (what, is) in
        [("everything is inside", settings.everything), ("search", settings.search), ("portable", settings.portable)]
    {
        if is {
            println!("  {what}");
        }
    }
    if !settings.tags.is_empty() {
        println!("  tags: {}", plain(&settings.tags.join(", ")));
    }
    for tool in &view.all_tools {
        println!("  tool {tool}{}", if view.tools.contains(tool) { "" } else { " (not by hand)" });
    }
    for NamedContent { kind, name } in &view.content {
        println!("  {} {}", kind.as_str(), plain(name));
    }
    for warning in &view.warnings {
        eprintln!("Warning: {warning}");
    }
}

async fn write(write: Write, exists: bool) -> anyhow::Result<()> {
    let draft = write.draft()?;
    let (store, toolsets, mut caller) = open(&write.place).await?;
    if write.local {
        caller = Auth::local_at(&store, caller.scopes).await?;
    }
    let done = if exists {
        toolsets.update(&caller, (&write.name, None), draft).await
    } else {
        toolsets.create(&caller, &write.name, draft).await
    };
    store.close().await?;
    print(&done?, write.place.json);
    Ok(())
}

async fn delete(named: Named) -> anyhow::Result<()> {
    let (store, toolsets, caller) = open(&named.place).await?;
    let done = toolsets.delete(&caller, &named.name, None).await;
    store.close().await?;
    if let Err(error) = done {
        bail!("{error}");
    }
    println!("Deleted. Its tools stay.");
    Ok(())
}
