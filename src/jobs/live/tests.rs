//! Questions, answers, and who hears of them.

use serde_json::json;

use super::*;

fn map(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn run(recorded: Value) -> (Arc<LiveRun<&'static str>>, LiveEntry<&'static str>) {
    let id = RunId(uuid::Uuid::now_v7());
    LiveRuns::default().enter((id, Timestamp(0)), PrincipalId("anna".into()), CancellationToken::new(), map(recorded))
}

#[tokio::test]
async fn questions_are_told_and_answered_one_by_one() {
    let (run, _entry) = run(json!({}));
    let form = json!({"method": "elicitation/create"});
    let asking = run.ask(map(json!({"": form, "who": form})), |_, _| true);
    let caller = async {
        let expected = map(json!({"elicitation": form, "who": form}));
        assert_eq!(run.turn(false).await, Turn::Asking(expected));
        run.answer(map(json!({"elicitation": 1, "nobody": 2})));
        assert_eq!(run.turn(false).await, Turn::Asking(map(json!({"who": form}))));
        run.answer(map(json!({"who": 3})));
    };
    let (answers, ()) = tokio::join!(asking, caller);
    assert_eq!(answers, Ok(map(json!({"": 1, "who": 3}))));
    assert_eq!(run.answers(), map(json!({"elicitation": 1, "who": 3})));
    run.end("done");
    assert_eq!(run.turn(true).await, Turn::Ended("done"));
}

#[tokio::test]
async fn keys_are_never_used_twice_and_recorded_answers_come_first() {
    let (run, _entry) = run(json!({"a": 1, "a-2": 2, "a-3": "wrong"}));
    let any = |_: &Value, answer: &Value| answer.is_number();
    let form = json!({"method": "elicitation/create"});
    for number in 1..=2 {
        assert_eq!(run.ask(map(json!({"a": form})), any).await, Ok(map(json!({"a": number}))));
    }
    let (third, ()) = tokio::join!(run.ask(map(json!({"a": form})), any), async {
        assert_eq!(run.turn(false).await, Turn::Asking(map(json!({"a-3": form}))));
        run.answer(map(json!({"a-3": 3})));
    });
    assert_eq!(third, Ok(map(json!({"a": 3}))));
}

#[tokio::test]
async fn patience_ends_and_the_question_is_withdrawn() {
    let runs = LiveRuns::<()> { patience: Duration::from_millis(1), ..LiveRuns::default() };
    let id = (RunId(uuid::Uuid::now_v7()), Timestamp(0));
    let (run, _entry) = runs.enter(id, PrincipalId("anna".into()), CancellationToken::new(), Map::new());
    assert_eq!(run.ask(map(json!({"a": {}})), |_, _| true).await, Err(NoAnswer::TooLate));
    assert!(run.questions().is_empty());
}
