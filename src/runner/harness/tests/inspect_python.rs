//! What the inspector tells of Python.

use serde_json::{Value, json};

use super::{Call, inspected};

const HEADER: &str = "import datetime as dt, typing as t, enum
from typing import *
from dataclasses import dataclass, field, KW_ONLY
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum, auto
from uuid import UUID
from pydantic import BaseModel, Field, EmailStr, conint, PositiveInt
from collections.abc import Mapping as Map
class Color(str, Enum):
    RED = 'red'
    BLUE = 'blue'
class Step(Enum):
    A = auto()
    B = auto()
@dataclass
class Point:
    '''A point.

    Attributes:
        x: across
    '''
    x: int
    y: float = 1.5
    _: KW_ONLY
    tags: list[str] = field(default_factory=list)
    hidden: int = field(init=False, default=0)
    shared: ClassVar[int] = 1
class Base(TypedDict):
    a: int
class Row(Base, total=False):
    b: Required[str]
    c: date
    '''the day'''
class Node(TypedDict):
    value: int
    next: NotRequired['Node | None']
class Model(BaseModel):
    model_config = {'extra': 'forbid'}
    n: int = Field(..., ge=1, description='a number', alias='number')
    name: Optional[Annotated[str, Field(min_length=2, pattern='^a')]] = None
    mail: EmailStr
    k: conint(ge=3) = 4
Alias = dict[str, list[int]]
UserId = NewType('UserId', int)
T = TypeVar('T', bound=str)
LIMIT = 60 * 60
";

/// Checks the schema of each parameter, all in one signature.
fn check_schemas(table: &[(&str, Value)]) {
    let signature = |(index, (parameter, _)): (usize, &(&str, Value))| parameter.replacen('x', &format!("x{index}"), 1);
    let signature: Vec<String> = table.iter().enumerate().map(signature).collect();
    let answer = inspected("python", &format!("{HEADER}def main(*, {}): ...\n", signature.join(", ")));
    assert_eq!(answer["warnings"], json!([]));
    for (index, (parameter, expected)) in table.iter().enumerate() {
        assert_eq!(&answer["input_schema"]["properties"][format!("x{index}")], expected, "{parameter}");
    }
}

#[test]
fn plain_types_and_choices_become_schemas() {
    let or_null = json!({"type": "null"});
    check_schemas(&[
        ("x: str", json!({"type": "string"})),
        ("x: int = 3", json!({"type": "integer", "default": 3})),
        ("x: float", json!({"type": "number"})),
        ("x: bool", json!({"type": "boolean"})),
        ("x: list", json!({"type": "array"})),
        ("x: dict", json!({"type": "object"})),
        ("x: None", or_null.clone()),
        ("x: Any", json!({})),
        ("x: 't.List[int]'", json!({"type": "array", "items": {"type": "integer"}})),
        ("x: Optional[int] = None", json!({"anyOf": [{"type": "integer"}, or_null], "default": null})),
        ("x: int = None", json!({"anyOf": [{"type": "integer"}, or_null], "default": null})),
        ("x: int | str | None", json!({"anyOf": [{"type": "integer"}, {"type": "string"}, or_null]})),
        ("x: Union[int, Optional[str]]", json!({"anyOf": [{"type": "integer"}, {"type": "string"}, or_null]})),
        ("x: int | Any", json!({})),
        ("x: Literal['a', 'b']", json!({"type": "string", "enum": ["a", "b"]})),
        ("x: Literal[1, 2]", json!({"type": "integer", "enum": [1, 2]})),
        ("x: Literal['a', 1, None, Literal[True]]", json!({"enum": ["a", 1, null, true]})),
        ("x: Color = Color.RED", json!({"type": "string", "enum": ["red", "blue"], "default": "red"})),
        ("x: Step", json!({"type": "integer", "enum": [1, 2]})),
    ]);
}

#[test]
fn collections_and_formats_become_schemas() {
    check_schemas(&[
        (
            "x: tuple[int, str]",
            json!({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2}),
        ),
        ("x: tuple[int, ...]", json!({"type": "array", "items": {"type": "integer"}})),
        ("x: set[int]", json!({"type": "array", "items": {"type": "integer"}, "uniqueItems": true})),
        ("x: Sequence[float] = (1, 2.5)", json!({"type": "array", "items": {"type": "number"}, "default": [1, 2.5]})),
        ("x: Map[str, bool]", json!({"type": "object", "additionalProperties": {"type": "boolean"}})),
        (
            "x: dict[Color, int]",
            json!({"type": "object", "propertyNames": {"enum": ["red", "blue"]}, "additionalProperties": {"type": "integer"}}),
        ),
        ("x: dict[int, Any]", json!({"type": "object", "propertyNames": {"pattern": "^-?[0-9]+$"}})),
        ("x: dt.datetime", json!({"type": "string", "format": "date-time"})),
        ("x: date", json!({"type": "string", "format": "date"})),
        ("x: time", json!({"type": "string", "format": "time"})),
        ("x: UUID", json!({"type": "string", "format": "uuid"})),
        ("x: Decimal = Decimal('1.5')", json!({"type": "number", "default": 1.5})),
        ("x: bytes", json!({"type": "string", "contentEncoding": "base64"})),
    ]);
}

#[test]
fn aliases_defaults_and_fields_become_schemas() {
    let or_null = json!({"type": "null"});
    check_schemas(&[
        (
            "x: Alias",
            json!({"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer"}}}),
        ),
        ("x: UserId", json!({"type": "integer"})),
        ("x: T", json!({"type": "string"})),
        ("x: int = LIMIT", json!({"type": "integer", "default": 3600})),
        ("x: int = compute()", json!({"type": "integer"})),
        ("x=1.5", json!({"type": "number", "default": 1.5})),
        ("x=True", json!({"type": "boolean", "default": true})),
        ("x: Annotated[int, 'how  many']", json!({"type": "integer", "description": "how many"})),
        (
            "x: Annotated[int, Field(ge=1, lt=5, description='D')] = 2",
            json!({"type": "integer", "minimum": 1, "exclusiveMaximum": 5, "description": "D", "default": 2}),
        ),
        (
            "x: Annotated[Optional[float], Field(gt=0)] = None",
            json!({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, or_null], "default": null}),
        ),
        (
            "x: Annotated[list[int], Field(min_length=1, default=[1])]",
            json!({"type": "array", "items": {"type": "integer"}, "minItems": 1, "default": [1]}),
        ),
        (
            "x: int = Field(7, gt=0, title='T')",
            json!({"type": "integer", "exclusiveMinimum": 0, "title": "T", "default": 7}),
        ),
        ("x: PositiveInt", json!({"type": "integer", "exclusiveMinimum": 0})),
    ]);
}

#[test]
fn classes_become_schemas() {
    let or_null = json!({"type": "null"});
    check_schemas(&[
        (
            "x: Point",
            json!({"type": "object", "description": "A point.", "properties": {"x": {"type": "integer", "description": "across"},
            "y": {"type": "number", "default": 1.5}, "tags": {"type": "array", "items": {"type": "string"}, "default": []}},
            "required": ["x"], "additionalProperties": false}),
        ),
        (
            "x: Row",
            json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"},
            "c": {"type": "string", "format": "date", "description": "the day"}}, "required": ["a", "b"]}),
        ),
        (
            "x: Model",
            json!({"type": "object", "properties": {"number": {"type": "integer", "minimum": 1, "description": "a number"},
            "name": {"anyOf": [{"type": "string", "minLength": 2, "pattern": "^a"}, or_null], "default": null},
            "mail": {"type": "string", "format": "email"}, "k": {"type": "integer", "minimum": 3, "default": 4}},
            "required": ["number", "mail"], "additionalProperties": false}),
        ),
    ]);
}

#[test]
fn key_order_is_the_signatures() {
    let answer = inspected("python", "def main(zeta: int, alpha: str = 'a', *, mid: bool): ...");
    assert_eq!(
        answer["input_schema"].to_string(),
        r#"{"type":"object","properties":{"zeta":{"type":"integer"},"alpha":{"type":"string","default":"a"},"mid":{"type":"boolean"}},"required":["zeta","mid"],"additionalProperties":false}"#
    );
}

#[test]
fn recursive_types_use_definitions() {
    let answer = inspected("python", &format!("{HEADER}def main(x: Node) -> Node: ..."));
    let node = json!({"type": "object", "properties": {"value": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}}, "required": ["value"]});
    assert_eq!(answer["input_schema"]["properties"]["x"], json!({"$ref": "#/$defs/Node"}));
    assert_eq!(answer["input_schema"]["$defs"]["Node"], node);
    assert_eq!(answer["output_schema"], json!({"type": "object", "$ref": "#/$defs/Node", "$defs": {"Node": node}}));
}

#[test]
fn many_nested_classes_stay_small() {
    let mut code = String::from("from typing import TypedDict\nclass C0(TypedDict):\n a: int\n");
    for n in 1..40 {
        code += &format!("class C{n}(TypedDict):\n a: C{m}\n b: C{m}\n", m = n - 1);
    }
    let answer = inspected("python", &format!("{code}def main(x: C39): ..."));
    assert!(answer.to_string().len() < 30_000, "{} bytes", answer.to_string().len());
}

#[test]
fn unknown_types_are_open_and_warned_of() {
    let answer = inspected("python", "import pandas as pd\ndef main(x: pd.DataFrame): ...");
    let warnings = &answer["warnings"];
    assert_eq!(answer["input_schema"]["properties"]["x"], json!({}));
    assert!(
        warnings[0]
            .as_str()
            .unwrap()
            .ends_with("the type `pd.DataFrame` has no JSON Schema; any JSON value is accepted there"),
        "{warnings}"
    );
    let bare = inspected("python", "def main(x): ...");
    assert_eq!(bare["warnings"], json!(["line 1: the parameter `x` has no type; any JSON value is accepted there"]));
}

#[test]
fn special_parameters_are_no_arguments() {
    let code = "from omniforge import Context\nimport typing\ndef main(a: int, ctx, c: typing.Optional[Context] = None, d: 'Context' = None, **more: int): ...";
    assert_eq!(
        inspected("python", code)["input_schema"],
        json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": {"type": "integer"}})
    );
    let named = inspected("python", "def main(context: str): ...");
    assert_eq!(named["input_schema"]["properties"], json!({}));
    assert!(named["warnings"][0].as_str().unwrap().contains("the parameter `context` gets the context"));
    assert_eq!(inspected("python", "def main(**kw): ...")["input_schema"]["additionalProperties"], true);
}

#[test]
fn docstrings_describe() {
    let google = inspected(
        "python",
        "'''Module.'''\ndef main(a: int, b=None, *, c: str = ''):\n    '''Does\n    it.\n\n    More.\n\n    Args:\n        a (int): the a\n            and on\n        b (list[str], optional): the b: with colon\n        c: the c\n\n    Returns:\n        nothing: at all\n    '''",
    );
    assert_eq!(google["description"], "Does it.");
    assert_eq!(
        google["input_schema"]["properties"],
        json!({"a": {"type": "integer", "description": "the a and on"},
        "b": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}], "description": "the b: with colon", "default": null},
        "c": {"type": "string", "description": "the c", "default": ""}})
    );
    let numpy = inspected(
        "python",
        "def main(a, b, c=2):\n    '''N.\n\n    Parameters\n    ----------\n    a : {'x', 'y'}\n        the a\n    b, c : integer, optional\n        both\n        of them\n\n    Returns\n    -------\n    d : int\n    '''",
    );
    assert_eq!(
        numpy["input_schema"]["properties"],
        json!({"a": {"type": "string", "enum": ["x", "y"], "description": "the a"},
        "b": {"type": "integer", "description": "both of them"}, "c": {"type": "integer", "description": "both of them", "default": 2}})
    );
    let sphinx = inspected(
        "python",
        "def main(x, y):\n    '''S.\n\n    :param int x: the x\n    :param y: the y\n    :type y: str\n    '''",
    );
    assert_eq!(
        sphinx["input_schema"]["properties"],
        json!({"x": {"type": "integer", "description": "the x"}, "y": {"type": "string", "description": "the y"}})
    );
    assert_eq!(inspected("python", "'''Module\ndoc.\n\nx'''\nprint(1)")["description"], "Module doc.");
}

#[test]
fn type_comments_count() {
    let each = inspected(
        "python",
        "def main(x,  # type: int\n         y=None,  # type: str\n         ):\n    # type: (...) -> dict\n    pass",
    );
    assert_eq!(
        each["input_schema"]["properties"],
        json!({"x": {"type": "integer"}, "y": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null}})
    );
    assert_eq!(each["output_schema"], json!({"type": "object"}));
    let whole = inspected("python", "def main(x, y):\n    # type: (int, str) -> None\n    pass");
    assert_eq!(whole["input_schema"]["properties"], json!({"x": {"type": "integer"}, "y": {"type": "string"}}));
    assert_eq!(inspected("python", "x = 1\n# type: no such thing (\ndef main(): ...")["type"], "inspected");
}

#[test]
fn results_that_are_objects_have_a_schema() {
    for (annotation, expected) in [
        ("dict", json!({"type": "object"})),
        ("dict[str, Decimal]", json!({"type": "object", "additionalProperties": {"type": "string"}})),
        ("Base", json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})),
        ("str", Value::Null),
        ("list[dict]", Value::Null),
        ("Optional[dict]", Value::Null),
        ("pd.DataFrame", Value::Null),
    ] {
        let answer = inspected("python", &format!("{HEADER}async def main() -> {annotation}: ..."));
        assert_eq!((&answer["output_schema"], &answer["warnings"]), (&expected, &json!([])), "{annotation}");
    }
}

#[test]
fn the_style_is_told_without_running() {
    for (code, style) in [
        ("def main(): ...", "function"),
        ("async def main(): ...", "function"),
        ("def main(): ...\nif __name__ == '__main__': main()", "script"),
        ("def main(): ...\nif '__main__' == __name__: pass", "script"),
        ("def main(): ...\nmain()", "script"),
        ("import asyncio, sys\nasync def main(): ...\nsys.exit(asyncio.run(main()))", "script"),
        ("import typer\ndef main(): ...\ntyper.run(main)", "script"),
        ("def main(): ...\ndef other(): main()\nf = lambda: main()", "function"),
        ("def main(): ...\nmain = cached(main)", "function"),
        ("if True:\n def main(): ...", "script"),
        ("class A:\n def main(self): ...", "script"),
        ("print(1)", "script"),
        ("raise SystemExit('never run')", "script"),
    ] {
        let answer = inspected("python", code);
        assert_eq!(answer["style"], style, "{code}");
        assert_eq!(answer["input_schema"].is_null(), style == "script", "{code}");
    }
}

#[test]
fn the_metadata_block_and_the_imports_are_read() {
    let code = "# /// script\n# requires-python = \">=3.9\"\n# dependencies = [\n#   \"httpx>=0.27\",\n#   'rich[all]',  # for show\n# ]\n#\n# [tool.uv]\n# index = 1\n# ///\nimport os.path, httpx\ndef main():\n from rich.x import y\n from . import z\n from omniforge import ctx";
    let answer = inspected("python", code);
    assert_eq!(answer["dependencies"], json!(["httpx>=0.27", "rich[all]"]));
    assert_eq!(
        (&answer["requires_python"], &answer["imports"]),
        (&json!(">=3.9"), &json!(["httpx", "omniforge", "os", "rich"]))
    );
    assert_eq!(answer["third_party"], json!(["httpx", "rich"]));
    let parsed = crate::runner::inspection::parse(answer).unwrap().unwrap();
    assert_eq!(parsed.dependencies.len(), 2);
}

#[test]
fn faults_have_a_place() {
    let deep = format!("x = 1\ndef main(x: {}int{}): ...", "list[".repeat(60), "]".repeat(60));
    for (code, line, message) in [
        ("x = (1\ndef main(): pass", 1, "'(' was never closed"),
        ("def main():\n  return 1\n x", 3, "unindent does not match any outer indentation level"),
        ("x = 1\nreturn x", 2, "'return' outside function"),
        ("def main(a, a): ...", 1, "duplicate argument 'a' in function definition"),
        ("def main(a,\n    *rest): ...", 2, "`*rest` is refused"),
        ("def main():\n  yield 1", 2, "`main` can't be a generator"),
        ("x = 1\ny = '\0'", 2, "the code holds a null byte"),
        (&deep, 2, "the types are nested more than 48 levels deep"),
        ("# /// script\n# dependencies = [1]\n# ///", 2, "`dependencies` must be an array of strings"),
        ("# /// script\n# dependencies = ['a'\n# x = 1\n# ///", 3, "the metadata block (`# /// script`) is no TOML: "),
        ("# /// script\n# requires-python = 3\n# ///", 2, "`requires-python` must be a string"),
        ("# /// script\n# dependencies = []\nx = 1", 1, "isn't closed by a line `# ///`"),
        ("# /// script\n#dependencies = []\n# ///", 2, "must be `#`, or begin with `# `"),
        ("# /// script\n# ///\n\n# /// script\n# ///", 4, "two `# /// script` blocks"),
    ] {
        let error = inspected("python", code);
        assert_eq!((&error["type"], &error["line"]), (&json!("code_error"), &json!(line)), "{code}: {error}");
        assert!(error["message"].as_str().unwrap().contains(message), "{code}: {error}");
        assert!(crate::runner::inspection::parse(error).unwrap().is_err());
    }
}

#[test]
fn code_that_is_nested_too_deeply_is_a_fault() {
    for code in [
        "(".repeat(5000),
        format!("x={}1", "-".repeat(200_000)),
        format!("x={}", vec!["1"; 100_000].join("+")),
        format!("def main(x: {}int{}): ...", "list[".repeat(90), "]".repeat(90)),
    ] {
        let answer = inspected("python", &code);
        assert!(["code_error", "inspected"].contains(&answer["type"].as_str().unwrap()), "{answer}");
    }
}

#[test]
fn compiler_warnings_are_passed_on() {
    let answer = inspected("python", "x = '\\d'\ndef main(): ...");
    assert!(answer["warnings"][0].as_str().unwrap().starts_with("line 1: "), "{answer}");
}

#[test]
fn inspecting_runs_nothing() {
    let done = Call::new("python", "print('ran')\nimport os; os._exit(9)\ndef main(): ...", "{}")
        .with("inspect", json!(true))
        .run();
    assert_eq!((done.stdout.as_str(), done.status), ("", Some(0)));
}
