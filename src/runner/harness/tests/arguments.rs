//! Python arguments that arrive as the type of their annotation.

use serde_json::json;

use super::{answer, check_exceptions, text, value};

const HEADER: &str = "from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import *
from uuid import UUID
class Color(Enum):
    RED = 'red'
    BLUE = 'blue'
@dataclass
class Point:
    x: int
    when: date | None = None
    color: Color = Color.RED
    inner: Optional['Point'] = None
class Row(TypedDict, total=False):
    day: date
    n: int
";

/// What `repr` shows of arguments that are annotated so and given that JSON, with and without postponed annotations.
fn seen(table: &[(&str, &str)]) -> Vec<String> {
    let parameters: Vec<String> = table.iter().enumerate().map(|(at, (kind, _))| format!("x{at}: {kind}")).collect();
    let given: Vec<String> = table.iter().enumerate().map(|(at, (_, given))| format!("\"x{at}\":{given}")).collect();
    let code = format!("{HEADER}def main({}): return list(map(repr, locals().values()))", parameters.join(", "));
    let given = format!("{{{}}}", given.join(","));
    let plain = answer("python", &code, &given);
    let postponed = answer("python", &format!("from __future__ import annotations\n{code}"), &given);
    assert_eq!(plain, postponed);
    serde_json::from_value(plain["value"].clone()).unwrap_or_else(|_| panic!("{plain}"))
}

#[test]
fn values_arrive_as_their_annotation() {
    let table = [
        ("int", "3.0", "3"),
        ("int", "3", "3"),
        ("float", "3", "3"),
        ("Color", "\"red\"", "<Color.RED: 'red'>"),
        ("Color", "\"BLUE\"", "<Color.BLUE: 'blue'>"),
        ("Optional[Color]", "null", "None"),
        ("Optional[Color]", "\"red\"", "<Color.RED: 'red'>"),
        ("'Color | None'", "\"red\"", "<Color.RED: 'red'>"),
        ("list[Color]", "[\"red\"]", "[<Color.RED: 'red'>]"),
        ("List[Dict[str, Color]]", "[{\"a\":\"red\"}]", "[{'a': <Color.RED: 'red'>}]"),
        ("dict[int, date]", "{\"1\":\"2024-01-02\"}", "{1: datetime.date(2024, 1, 2)}"),
        ("dict[Color, int]", "{\"red\":2.0}", "{<Color.RED: 'red'>: 2}"),
        ("Literal[Color.RED]", "\"red\"", "<Color.RED: 'red'>"),
        ("Literal['a', 1]", "\"a\"", "'a'"),
        ("date", "\"2024-01-02\"", "datetime.date(2024, 1, 2)"),
        (
            "datetime",
            "\"2024-01-02T03:04:05Z\"",
            "datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)",
        ),
        ("time", "\"03:04\"", "datetime.time(3, 4)"),
        ("timedelta", "90", "datetime.timedelta(seconds=90)"),
        ("date | str", "\"soon\"", "'soon'"),
        ("str | date", "\"2024-01-02\"", "'2024-01-02'"),
        ("UUID", "\"00000000-0000-0000-0000-000000000001\"", "UUID('00000000-0000-0000-0000-000000000001')"),
        ("Path", "\"a/b\"", "PosixPath('a/b')"),
        ("bytes", "\"aGk=\"", "b'hi'"),
        ("tuple[int, date]", "[1.0, \"2024-01-02\"]", "(1, datetime.date(2024, 1, 2))"),
        ("tuple[int, ...]", "[1, 2]", "(1, 2)"),
        ("tuple", "[1, 2]", "(1, 2)"),
        ("set[int]", "[1, 1]", "{1}"),
        ("frozenset", "[]", "frozenset()"),
        ("Sequence[date]", "[\"2024-01-02\"]", "[datetime.date(2024, 1, 2)]"),
        ("Annotated[date, 'the day']", "\"2024-01-02\"", "datetime.date(2024, 1, 2)"),
        ("Point", "{\"x\":1}", "Point(x=1, when=None, color=<Color.RED: 'red'>, inner=None)"),
        (
            "Point",
            "{\"x\":1,\"when\":\"2024-01-02\",\"inner\":{\"x\":2,\"color\":\"blue\"}}",
            "Point(x=1, when=datetime.date(2024, 1, 2), color=<Color.RED: 'red'>, inner=Point(x=2, when=None, color=<Color.BLUE: 'blue'>, inner=None))",
        ),
        ("Row", "{\"day\":\"2024-01-02\",\"n\":1}", "{'day': datetime.date(2024, 1, 2), 'n': 1}"),
        ("Any", "[1]", "[1]"),
    ];
    let seen = seen(&table.map(|(annotation, given, _)| (annotation, given)));
    for ((annotation, given, expected), seen) in table.iter().zip(seen) {
        assert_eq!(&seen, expected, "{annotation} given {given}");
    }
}

#[test]
fn a_decimal_keeps_every_digit() {
    let table = [
        ("Decimal", "0.123456789012345678901234567890"),
        ("list[Decimal]", "[1, 1.10, 1e2, \"2.50\"]"),
        ("Optional[Decimal]", "123456789012345678901234567890"),
    ];
    let expected = [
        "Decimal('0.123456789012345678901234567890')",
        "[Decimal('1'), Decimal('1.10'), Decimal('1E+2'), Decimal('2.50')]",
        "Decimal('123456789012345678901234567890')",
    ];
    assert_eq!(seen(&table), expected);
    let code = format!(
        "{HEADER}def main(d: Decimal, f, o: dict): return [str(d), type(f).__name__, type(o['v'][0]).__name__]"
    );
    assert_eq!(
        answer("python", &code, r#"{"d":0.1,"f":0.5,"o":{"v":[1.5]}}"#),
        value(json!(["0.1", "float", "float"]))
    );
}

#[test]
fn names_known_to_type_checkers_alone_leave_the_value_as_it_came() {
    let code = "from __future__ import annotations\nfrom datetime import date\ndef main(a: Missing, b: date): return [a, b.year]";
    assert_eq!(answer("python", code, r#"{"a":"x","b":"2024-01-02"}"#), value(json!(["x", 2024])));
}

#[test]
fn defaults_and_open_keywords_work_beside_conversion() {
    let with = |signature: &str, result: &str| format!("{HEADER}def main({signature}): return {result}");
    assert_eq!(
        answer("python", &with("a: date = None, *, b: Color = Color.RED, ctx", "[a, b.name, ctx.tool]"), "{}"),
        value(json!([null, "RED", "sum"]))
    );
    assert_eq!(
        answer("python", &with("**days: date", "{k: d.year for k, d in days.items()}"), r#"{"x":"2024-01-02"}"#),
        value(json!({"x": 2024}))
    );
    assert_eq!(
        answer("python", &with("a: date, b: Color, /", "a.isoformat() + b.name"), r#"{"a":"2024-01-02","b":"red"}"#),
        text("2024-01-02RED")
    );
    let field = "class FieldInfo:\n def is_required(self): return False\n def get_default(self, call_default_factory): return 7\ndef main(n: int = FieldInfo()): return n";
    assert_eq!(answer("python", field, "{}"), value(json!(7)));
}

#[test]
fn pydantic_style_models_validate_themselves() {
    let code = "class Model:\n @classmethod\n def model_validate(cls, value):\n  made = cls(); made.value = value; return made\ndef main(m: Model, ms: list[Model]): return [m.value, ms[0].value]";
    assert_eq!(answer("python", code, r#"{"m":{"a":1},"ms":[{"b":2}]}"#), value(json!([{"a": 1}, {"b": 2}])));
}

#[test]
fn what_does_not_convert_says_which_argument() {
    let main = |annotation: &str| format!("{HEADER}def main(x: {annotation}): return x");
    let table = [
        (main("date"), r#"{"x":"soon"}"#, "ValueError: argument `x` is no date: Invalid isoformat string: 'soon'"),
        (main("list[Color]"), r#"{"x":["red","green"]}"#, "argument `x`[1] must be one of 'red', 'blue', not 'green'"),
        (main("tuple[int, int]"), r#"{"x":[1]}"#, "argument `x` must have 2 items, not 1"),
        (main("Point"), r#"{"x":{"x":1,"z":2}}"#, "argument `x` has no field 'z' (Point has x, when, color, inner)"),
        (main("Point"), r#"{"x":{}}"#, "argument `x` is no Point: "),
        (main("Point"), r#"{"x":5}"#, "argument `x` must be an object (Point)"),
        (main("set[list]"), r#"{"x":[[1]]}"#, "argument `x` can't be a set: unhashable type: 'list'"),
        (main("dict[int, int]"), r#"{"x":{"a":1}}"#, "the key 'a' is no int"),
    ];
    for (code, arguments, expected) in &table {
        check_exceptions("python", &[(code, arguments, expected)]);
    }
}
