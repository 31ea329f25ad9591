//! The transcripts of session version 1, played to the real layer: what it says must be what stands in them, field by field.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use lambda_runtime::tower::{Layer as _, Service as _, service_fn};
use lambda_runtime::{Diagnostic, LambdaEvent};
use leasehold::{Lease, MissingPath, Release};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::support::{Keeper, Peer, event_within};

#[allow(unreachable_pub, reason = "the keeper's tests share it")]
#[path = "../transcripts/read.rs"]
mod read;

use self::read::{Line, Names, Step};

/// Those in which a layer can be brought to say its part. The others have several acquisitions in one session, lines that
/// no layer says, or a process that dies.
const OF_LAYERS: [&str; 18] = [
    "at_risk",
    "busy",
    "busy_kept",
    "cancel",
    "check",
    "dropped",
    "failed",
    "hello",
    "kept",
    "lost",
    "observe",
    "plain",
    "release_wait",
    "silence",
    "state",
    "two_keys",
    "two_locks",
    "unlocked",
];

/// What a transcript says happens around the session, up to now.
type Happened = watch::Sender<Vec<String>>;

async fn happens(mut happened: watch::Receiver<Vec<String>>, what: &str) {
    happened.wait_for(|happened| happened.iter().any(|it| it == what)).await.unwrap();
}

/// What the handler itself adds to that.
const WORKS: &str = "the handler works";

fn wait_for_the_handler(happened: &Happened) {
    let end = Instant::now() + Duration::from_secs(60);
    while !happened.borrow().iter().any(|it| it == WORKS) {
        assert!(Instant::now() < end, "the handler does not begin");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The keeper's side, on a thread of its own.
fn play(keeper: &Keeper, name: &str, steps: Vec<Step>, happened: &Happened) -> Result<(), String> {
    let (mut peers, mut names) = (HashMap::<u64, Peer>::new(), Names::default());
    for (at, step) in steps.into_iter().enumerate() {
        let at = at + 2;
        match step {
            Step::Then(what) if what == WORKS => wait_for_the_handler(happened),
            Step::Then(what) => happened.send_modify(|happened| happened.push(what)),
            Step::Layer(on, Line::Says(expected)) => {
                let peer = peers.entry(on).or_insert_with(|| keeper.accept());
                let said = peer.hear(expected["type"].as_str().unwrap());
                let compared = names.compare(&expected, &said);
                compared.map_err(|wrong| format!("{name}.jsonl:{at}: {wrong}, in {said}"))?;
            }
            Step::Keeper(on, Line::Says(line)) => peers.get_mut(&on).unwrap().say(names.fill(&line, 0)),
            Step::Layer(on, _) => peers.remove(&on).unwrap().hear_the_end(),
            Step::Keeper(..) => return Err(format!("{name}.jsonl:{at}: no keeper hangs up on a layer that is right")),
        }
    }
    Ok(())
}

/// One invocation of a function with this transcript's layer; its handler does what the transcript says.
async fn invoke(keeper: &Keeper, name: &str, happening: &Happened) {
    let happened = happening.subscribe();
    let variables: &[(&str, &str)] = if name == "observe" { &[("LEASEHOLD_MODE", "observe")] } else { &[] };
    let mut builder = keeper.layer_under::<Value>("orders:{id}", variables);
    match name {
        "kept" => builder = builder.hold_at_least(Duration::from_secs(600)),
        "release_wait" | "state" => builder = builder.release(Release::BeforeResponse),
        // A tenth more is asked for, as a word may wait for a tenth.
        "silence" => builder = builder.max_silence(Duration::from_secs(20)),
        "two_keys" => builder = builder.also("old:{tenant}"),
        "unlocked" => builder = builder.missing_path(MissingPath::RunUnlocked),
        _ => {}
    }
    let layer = builder.build().unwrap();
    let (answers, works) = (happened.clone(), happening.clone());
    let (checks, makes_progress, saves) = (name == "check", name == "silence", name == "state");
    let mut service = layer.layer(service_fn(move |_: LambdaEvent<Value>| {
        let (answers, works) = (answers.clone(), works.clone());
        async move {
            works.send_modify(|happened| happened.push(WORKS.to_owned()));
            if saves {
                let lease = Lease::current().unwrap();
                assert_eq!(lease.state::<Value>().await.unwrap(), None);
                lease.save_state(&json!({ "rows_done": 1000 })).await.unwrap();
                lease.save_state_on_release(&json!({ "rows_done": 2000 })).unwrap();
            }
            if checks {
                // On a machine this busy the answer may come too late, but it is asked for.
                let _ = Lease::current().unwrap().ensure_held();
            }
            if makes_progress {
                happens(answers.clone(), "the handler makes progress").await;
                // At once a second time, which is not told.
                (0..2).for_each(|_| Lease::current().unwrap().progress());
            }
            happens(answers, "the handler answers").await;
            Ok::<_, Diagnostic>(json!("done"))
        }
    }));
    if name == "hello" {
        return;
    }
    let payload = if name == "unlocked" { json!({}) } else { json!({ "id": "A-17", "tenant": "acme" }) };
    let event = event_within(payload, (name == "plain").then_some(Duration::from_secs(60)));
    tokio::select! {
        _ = async {
            if name == "two_locks" {
                let outer = keeper.layer_under::<Box<RawValue>>("tenants:{tenant}", &[]).build().unwrap();
                drop(outer.layer(service).call(event).await);
            } else {
                drop(service.call(event).await);
            }
        } => {}
        () = happens(happened, "the invocation is dropped") => {}
    }
}

#[tokio::test]
async fn the_layer_says_what_stands_in_the_transcripts_of_version_1() {
    let mut seen = 0;
    for (name, steps) in read::all() {
        if !OF_LAYERS.contains(&name.as_str()) {
            continue;
        }
        seen += 1;
        let (keeper, happened) = (std::sync::Arc::new(Keeper::bind()), watch::Sender::default());
        let invoked = invoke(&keeper, &name, &happened);
        let (played, its_keeper, its_name) = (happened.clone(), keeper.clone(), name.clone());
        let playing = tokio::task::spawn_blocking(move || {
            // Said when a layer is built into its service, before anything else.
            match its_name.as_str() {
                "hello" => {}
                "two_locks" => (0..2).for_each(|_| its_keeper.accept_hello()),
                _ => its_keeper.accept_hello(),
            }
            play(&its_keeper, &its_name, steps, &played)
        });
        timeout(Duration::from_secs(60), invoked).await.unwrap_or_else(|_| panic!("{name}: the invocation hangs"));
        playing.await.unwrap().unwrap();
    }
    assert_eq!(seen, OF_LAYERS.len());
}
