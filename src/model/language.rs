//! The languages a script can be written in, and the two styles of script.

use serde::{Deserialize, Serialize};

/// What a script is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// CPython.
    Python,
    /// JavaScript on Node.
    JavaScript,
    /// TypeScript where the runtime strips types.
    TypeScript,
    /// GNU Bash.
    Bash,
}

impl Language {
    /// Every language, in the order in which they are listed.
    pub const ALL: [Self; 4] = [Self::Python, Self::JavaScript, Self::TypeScript, Self::Bash];

    /// The name used in JSON, SQL and the pages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::JavaScript => "javascript",
            Self::TypeScript => "typescript",
            Self::Bash => "bash",
        }
    }

    /// The language of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|language| language.as_str() == text)
    }
}

/// How a script is called, told from its syntax alone (DESIGN §1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Style {
    /// `main` is called with the arguments; what it returns is the result.
    Function,
    /// The code runs as a program: arguments on stdin, result on stdout.
    Script,
}

impl Style {
    /// The name used in JSON and SQL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::Script => "script",
        }
    }
}
