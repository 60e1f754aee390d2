//! The authoring guide that models and people read.

use std::fmt::Write as _;

use crate::model::{Limits, SandboxLevel};

/// What the guide tells of this server.
pub struct Facts<'a> {
    /// Installed languages with their versions, such as `python 3.11.7`.
    pub runtimes: &'a [String],
    /// The limits of a run that asks for nothing.
    pub limits: &'a Limits,
    /// How runs are confined.
    pub sandbox: SandboxLevel,
    /// Whether dependencies can be installed.
    pub installs: bool,
}

/// The guide, in Markdown.
pub fn guide(facts: &Facts<'_>) -> String {
    let mut text = String::from(CONTRACT);
    let limits = facts.limits;
    let _ = write!(
        text,
        "\n## This server\n\nInstalled: {}. Sandbox: `{}`. Limits of a run: {} s on the clock, {} MiB of memory over all its \
         processes, {} processes, {} MiB in /tmp, {} MiB of result, {} MiB of each output stream kept inline.\n",
        facts.runtimes.join(", "),
        facts.sandbox.as_str(),
        limits.wall.as_secs(),
        limits.memory_bytes >> 20,
        limits.processes,
        limits.tmp_bytes >> 20,
        limits.result_bytes >> 20,
        limits.output_inline_bytes >> 20,
    );
    if !facts.installs {
        text.push_str("Dependencies can't be installed: no `uv` program was found. Use the standard library.\n");
    }
    text
}

const CONTRACT: &str = r#"# Writing tools for OmniForge

A tool is a script. Save it with `omniforge_create_tool`, try it with `omniforge_test_tool`, call it by its name.
It runs in a sandbox: an empty private working directory, no network but what it names, no other tool's files, its own dependencies.

## Python, function style (best)

Define `main`. Its parameters are the arguments, its return value is the result, its docstring describes it.
The schema comes from the signature; you need not write one.

```python
def main(net: float, rate: float = 20) -> dict:
    """Add VAT to a net amount.

    Args:
        net: The amount without VAT.
        rate: Per cent.
    """
    vat = round(net * rate / 100, 2)
    return {"net": net, "vat": vat, "gross": net + vat}
```

* A `str` is the text of the result; any other JSON value is text and `structuredContent`; `None` gives what was printed.
* `raise ToolError("what to do instead")` (from `omniforge import ToolError`) answers with exactly that text.
* `from omniforge import Text, Image, Audio, ResourceLink, EmbeddedResource, Result`: return one, or a list; `Image(png_bytes)`,
  `Result([Image(path="plot.png")], structured={"n": 1}, meta={…})`. Each block takes `annotations` and `meta`.
* A parameter `ctx` gets the context: `ctx.progress(done, total, message)`, `ctx.info(text)`, `ctx.log(level, data)`.
* Ask the person, the client's model, its roots: `ctx.elicit(message, schema)` (`.accepted`, `.content`), `ctx.sample(text)`
  (`.text`), `ctx.roots()`, `ctx.ask({key: ctx.elicitation(…)})`. In JavaScript they are promises.
* `ctx.call("other_tool", {…})` calls a saved tool; `ctx.state.get/set/delete` keep JSON values for the caller.
* Long work: `mode="async"` (or `ctx.start_task()`) answers with a handle at once; `get_job_result` fetches the result.
* Dependencies: the `dependencies` field, or a block `# /// script` … `# ///` at the top of the code.

## Any language, script style

Without `main` the code runs as a program: one JSON object on stdin (also in the file `$OMNIFORGE_ARGS_FILE`); what it
prints on stdout is the result; a non-zero exit is an error. Give an `input_schema`.

```bash
read -r -d '' ARGS; echo "Hello, $ARG_NAME"   # each top-level scalar is $ARG_<NAME>
```

```javascript
export default function main({ name }, ctx) {   // or exports.main = …
  return { greeting: `Hello, ${name}` };
}
```

## Resources, prompts, skills

Saved in the same way, with versions, and served at once: `omniforge_save_resource`, `omniforge_save_prompt`, `omniforge_save_skill`.

```json
{"uri": "notes://{day}", "code": "def main(day: str): return f'Notes of {day}'"}
{"name": "review", "template": "Review this {language} code: {code}", "completions": {"language": ["Python", "Rust"]}}
{"markdown": "---\nname: git-review\ndescription: Reviews a change.\n---\nRead the diff first."}
```

* A resource is `text`, `blob` (base64) or `code`; the `{placeholders}` of its URI are the parameters of `main`, which returns a
  text, bytes, `Image`, `EmbeddedResource`, or a list of them. `ctx.uri` is the URI that is read.
* A prompt is a `template`, `messages`, or `code` whose `main` returns a text or a list of `{"role": …, "content": …}`.
* `completion_code` suggests values: `main(argument, value, arguments)` returns a list.
* `ctx.resource_updated(uri)` and `ctx.notify("tools" | "prompts" | "resources")` tell clients that something has changed.

## Reach needs a person's approval

`network`, `secrets`, `calls` and limits above the default wait for approval; the last approved version serves meanwhile.

`network` names what a tool reaches: `api.example.org` (ports 80 and 443), `db.example.org:5432`, `*.example.org` and `"full"`
(through an HTTP proxy that `HTTPS_PROXY` names). Only TCP leaves. What was refused stands in the result as
`[network] refused HOST:PORT: why`. Not sure what a library needs? `omniforge_test_tool` with `learn: true` lets nothing out,
records what was tried and proposes the entries.
"#;
