//! The files that run inside the sandbox: they call the tool and answer for it. Embedded here, written to a directory
//! at start, mounted read-only at `/omniforge`.

use std::fs;
use std::io;
use std::path::Path;

/// Pairs each path with the text of the file.
macro_rules! embed {
    ($($path:literal),* $(,)?) => { [$(($path, include_str!(concat!("harness/", $path)))),*] };
}

/// The script that writes the harness's bytecode: run once per interpreter, outside the sandbox, as
/// `<python> -I -S DIR/python/compile.py`, before the directory is mounted. Without it every call compiles anew.
pub const PYTHON_COMPILE: &str = "python/compile.py";

/// Starts the Python harness from its bytecode, whose path is the argument behind it.
const PYTHON_START: &str = include_str!("harness/python/command.py");

/// Each file's path within the harness, and its text.
const FILES: &[(&str, &str)] = &embed![
    "node/run.cjs",
    "node/channel.cjs",
    "node/content.cjs",
    "node/driver.cjs",
    "node/failure.cjs",
    "node/inspector.cjs",
    "node/jsdoc.cjs",
    "node/loading.cjs",
    "node/omniforge.cjs",
    "node/questions.cjs",
    "node/results.cjs",
    "node/shapes.cjs",
    "node/syntax.cjs",
    "node/waiting.cjs",
    "node/vendor/acorn.js",
    "node/vendor/acorn.LICENSE",
    "python/start.py",
    "python/compile.py",
    "python/lib/omniforge/__init__.py",
    "python/lib/_omniforge/__init__.py",
    "python/lib/_omniforge/asking.py",
    "python/lib/_omniforge/channel.py",
    "python/lib/_omniforge/content.py",
    "python/lib/_omniforge/context.py",
    "python/lib/_omniforge/conversion.py",
    "python/lib/_omniforge/coroutine.py",
    "python/lib/_omniforge/driver.py",
    "python/lib/_omniforge/failure.py",
    "python/lib/_omniforge/inspector/__init__.py",
    "python/lib/_omniforge/inspector/analysis.py",
    "python/lib/_omniforge/inspector/classes.py",
    "python/lib/_omniforge/inspector/constraints.py",
    "python/lib/_omniforge/inspector/docstrings.py",
    "python/lib/_omniforge/inspector/known.py",
    "python/lib/_omniforge/inspector/leading.py",
    "python/lib/_omniforge/inspector/metadata.py",
    "python/lib/_omniforge/inspector/problem.py",
    "python/lib/_omniforge/inspector/schema.py",
    "python/lib/_omniforge/inspector/scope.py",
    "python/lib/_omniforge/inspector/signature.py",
    "python/lib/_omniforge/inspector/values.py",
    "python/lib/_omniforge/program.py",
    "python/lib/_omniforge/questions.py",
    "python/lib/_omniforge/results.py",
    "python/lib/_omniforge/shapes.py",
    "python/lib/_omniforge/waiting.py",
];

/// Writes the harness into `directory`, which is made where it doesn't exist.
///
/// # Errors
/// Whatever the file system refuses.
pub fn write(directory: &Path) -> io::Result<()> {
    for (path, text) in FILES {
        let target = directory.join(path);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(target, text)?;
    }
    Ok(())
}

/// The arguments that start the Python harness in `directory`.
pub fn python_arguments(directory: &str) -> Vec<String> {
    let flags = ["-I", "-S", "-X", "utf8", "-c", PYTHON_START];
    flags.into_iter().map(str::to_owned).chain([format!("{directory}/python/start.bin")]).collect()
}

#[cfg(test)]
mod tests;
