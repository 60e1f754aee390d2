//! Python: script style, and what is on the path.

use serde_json::json;

use super::{Call, check_exceptions};

#[test]
fn scripts_run_as_programs() {
    let run = |code: &str| Call::new("python", code, r#"{"a":1}"#).with("style", json!("script")).run();
    let plain = run(
        "import sys, json\nif __name__ == '__main__':\n print(json.load(sys.stdin), sys.argv, __file__)\n print(sorted(n for n in globals() if not n.startswith('__')))",
    );
    assert_eq!(plain.stdout, "{'a': 1} ['/tool/main.py'] /tool/main.py\n['json', 'sys']\n");
    assert_eq!((plain.frames.len(), plain.status), (0, Some(0)));
    let raised = run("def f():\n    return 1/0\nf()");
    assert_eq!(raised.status, Some(1));
    assert!(
        raised.stderr.starts_with(
            "Traceback (most recent call last):\n  File \"/tool/main.py\", line 3, in <module>\n    f()\n"
        ),
        "{}",
        raised.stderr
    );
    assert!(
        raised.stderr.ends_with("ZeroDivisionError: division by zero\n") && !raised.stderr.contains("omniforge"),
        "{}",
        raised.stderr
    );
    for (code, status, stderr) in [
        ("import sys; sys.exit(3)", 3, ""),
        ("raise SystemExit", 0, ""),
        ("exit('words')", 1, "words\n"),
        ("import sys; sys.exit(-1)", 255, ""),
        ("import atexit, sys\natexit.register(lambda: print('end', file=sys.stderr))", 0, "end\n"),
        (
            "import sys\nsys.excepthook = lambda *a: print('hook', a[0].__name__, file=sys.stderr)\n1/0",
            1,
            "hook ZeroDivisionError\n",
        ),
    ] {
        let done = run(code);
        assert_eq!((done.status, done.stderr.as_str()), (Some(status), stderr), "{code}");
    }
    let syntax = run("x = (");
    assert!(
        syntax.stderr.contains("File \"/tool/main.py\", line 1\n    x = (\n") && syntax.status == Some(1),
        "{}",
        syntax.stderr
    );
    let logged = run("from omniforge import ctx\nctx.info('hi')\nprint('out')");
    assert_eq!(logged.frames, [json!({"type": "log", "level": "info", "data": "hi"})]);
}

#[test]
fn the_environment_is_on_the_path_and_the_harness_is_not() {
    let environment = tempfile::tempdir().unwrap();
    std::fs::write(environment.path().join("driver.py"), "where = 'environment'").unwrap();
    std::fs::write(environment.path().join("omniforge.py"), "where = 'impostor'").unwrap();
    let mut call = Call::new(
        "python",
        "import driver, omniforge\ndef main(): return [driver.where, hasattr(omniforge, 'where')]",
        "{}",
    );
    call.environment = Some(environment.path().to_str().unwrap().to_owned());
    assert_eq!(call.run().frames[0]["value"], json!(["environment", false]));
    check_exceptions("python", &[("import results", "{}", "ModuleNotFoundError: No module named 'results'")]);
}
