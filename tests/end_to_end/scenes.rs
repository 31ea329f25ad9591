//! Every scene of the demo, asserted.

use leasehold_sandbox::demo::Scene;

use crate::stage::programs;

async fn passes(name: &str) {
    let scene = Scene::all().into_iter().find(|scene| scene.name == name).unwrap();
    let played = scene.play(&programs().await).await;
    if let Err(failed) = played.result {
        panic!("{}: {failed}\n{}", scene.title, played.narration);
    }
}

#[test]
fn every_scene_has_a_test_here() {
    let names: Vec<_> = Scene::all().iter().map(|scene| scene.name).collect();
    assert_eq!(
        names,
        ["one-key", "two-keys", "spin", "abort", "kill", "vanish", "too-late", "busy", "timeout"],
        "write a test for the new scene"
    );
}

#[tokio::test]
async fn two_invocations_on_one_key_run_one_after_the_other() {
    passes("one-key").await;
}

#[tokio::test]
async fn two_keys_run_side_by_side() {
    passes("two-keys").await;
}

#[tokio::test]
async fn a_spinning_handler_keeps_its_lock() {
    passes("spin").await;
}

#[tokio::test]
async fn an_aborting_handler_frees_its_lock() {
    passes("abort").await;
}

#[tokio::test]
async fn a_killed_handler_frees_its_lock() {
    passes("kill").await;
}

#[tokio::test]
async fn a_vanished_environment_is_recovered_from() {
    passes("vanish").await;
}

#[tokio::test]
async fn too_short_a_time_is_a_typed_error() {
    passes("too-late").await;
}

#[tokio::test]
async fn a_busy_key_is_an_error_that_names_the_holder() {
    passes("busy").await;
}

#[tokio::test]
async fn a_handler_that_times_out_frees_its_lock() {
    passes("timeout").await;
}
