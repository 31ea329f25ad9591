//! A `/tmp` in which nothing can be written any more.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use crate::{
    next::Cause,
    stage::{Row, Stage, staged},
    steps::{FIRST, event},
};

const LEASE: Duration = Duration::from_secs(60);

/// A file system of its own over a folder, small enough to be filled; it goes when this is dropped.
struct Small(PathBuf);

impl Small {
    /// None where this system lets nobody mount.
    fn mount(folder: &Path, options: &str) -> Option<Self> {
        let status =
            Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(folder).output().ok()?.status;
        status.success().then(|| Self(folder.to_owned()))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// Leaves no room for a single byte in this folder's file system, and says which file took it.
fn fill(folder: &Path) -> PathBuf {
    use std::io::Write as _;
    let path = folder.join("ballast");
    let mut file = fs::File::create(&path).unwrap();
    while file.write_all(&[b'x'; 512]).is_ok() {}
    while file.write_all(b"x").is_ok() {}
    path
}

#[tokio::test]
async fn a_full_tmp_costs_a_line_in_the_log_and_no_lock() {
    let stage = Stage::set(staged(LEASE).await).await;
    let tmp = stage.environment(0).tmp().unwrap();
    let small = Small::mount(&tmp, "size=256k");
    stage.environment(0).start().await.unwrap();
    let journal = tmp.join("leasehold/held");
    let ballast = if small.is_some() {
        fill(&tmp)
    } else {
        // Nobody may mount here: a file where the journal's folder should be has the same effect on every note.
        fs::write(&journal, b"").unwrap();
        journal.clone()
    };
    for round in ["one", "two"] {
        let first = stage.environment(0).start_invocation(event(round));
        let id = first.request_id().to_owned();
        stage.said("work began", &id).await;
        let row = stage.row().await;
        let Row::Held { owner } = row else { panic!("{row:?}\n{}", stage.timeline()) };
        let second = stage.environment(1).start_invocation(event(round));
        let second_id = second.request_id().to_owned();
        stage.said("waiting", &second_id).await;
        stage.open(0, round, "work");
        stage.open(1, round, "work");
        assert!(first.outcome().await.is_success(), "{}", stage.timeline());
        assert!(second.outcome().await.is_success(), "{}", stage.timeline());
        Cause::Freed("finished").check(&stage, &id, Some(&owner), &second_id, LEASE).await;
    }
    let told = stage.sandbox.log().count(|event| event.is_output("the reset journal can't be written"));
    assert_eq!(told, 1, "{}", stage.timeline());

    // With room again there are notes again.
    fs::remove_file(ballast).unwrap();
    let third = stage.environment(0).start_invocation(event(FIRST));
    stage.said("work began", third.request_id()).await;
    assert_eq!(fs::read_dir(&journal).unwrap().count(), 1, "{}", stage.timeline());
    stage.open(0, FIRST, "work");
    assert!(third.outcome().await.is_success(), "{}", stage.timeline());
    assert_eq!(stage.row_when_idle(0).await, Row::Free);
    assert_eq!(fs::read_dir(&journal).unwrap().count(), 0);
}

/// Not even a socket can be made when the extension starts.
#[tokio::test]
async fn a_tmp_without_room_for_the_socket_is_told_and_gets_its_socket_later() {
    let stage = Stage::set(staged(LEASE).await).await;
    let tmp = stage.environment(0).tmp().unwrap();
    let small = Small::mount(&tmp, "size=256k,nr_inodes=2");
    // The last file there can be; without a mount it lies where the socket's folder should be.
    let blocker = tmp.join("leasehold");
    fs::write(&blocker, b"").unwrap();
    stage.environment(0).start().await.unwrap();
    let outcome = stage.environment(0).invoke(event(FIRST)).await;
    assert_eq!(outcome.error_type(), Some("KeeperMissing"), "{outcome:?}\n{}", stage.timeline());
    assert!(stage.sandbox.log().find(|event| event.is_output("no handler can reach this keeper")).is_some());
    assert_eq!(stage.row().await, Row::Absent);

    fs::remove_file(&blocker).unwrap();
    if let Some(Small(folder)) = &small {
        let more = Command::new("mount").args(["-o", "remount,nr_inodes=64"]).arg(folder).status().unwrap();
        assert!(more.success());
    }
    stage.environment(0).thaw().await.unwrap();
    let socket = stage.environment(0).socket().unwrap();
    let bound = async {
        while !socket.exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(crate::stage::SOON, bound).await.unwrap_or_else(|_| panic!("{}", stage.timeline()));
    stage.open(0, FIRST, "work");
    let outcome = stage.environment(0).invoke(event(FIRST)).await;
    assert!(outcome.is_success(), "{outcome:?}\n{}", stage.timeline());
    assert_eq!(stage.row_when_idle(0).await, Row::Free);
}
