//! Code and environment merged, and everything that is wrong told at once.

use std::time::Duration;

use super::Polling;
use super::{Draft, Environment, KeeperChoice, Mode, OnLoss, Settings};
use crate::session::{OnCrash, Table};

fn environment(variables: &[(&str, &str)]) -> Environment {
    variables.iter().copied().collect()
}

/// What holds, what is wrong, and what is warned about.
fn resolve(draft: Draft, variables: &[(&str, &str)]) -> (Settings, Vec<String>, Vec<String>) {
    let mut problems = Vec::new();
    let (settings, warnings) = draft.resolve(&environment(variables), &mut problems);
    (settings, problems, warnings)
}

fn with_table() -> Draft {
    Draft { table: Some("locks".to_owned()), ..Draft::default() }
}

#[test]
fn the_defaults() {
    let (settings, problems, warnings) = resolve(with_table(), &[]);
    assert_eq!((problems.len(), warnings.len()), (0, 0));
    assert_eq!(settings.table, Table::new("locks"));
    assert_eq!((settings.lease_duration, settings.max_wait), (Duration::from_secs(30), Duration::from_secs(2)));
    assert_eq!((settings.reserve, settings.end_before_deadline), (None, None));
    assert_eq!((settings.polling, settings.max_hold), (Polling::tickets(), Duration::from_secs(900)));
    assert_eq!((settings.mode, settings.on_loss, settings.on_crash), (Mode::Enforce, OnLoss::Cancel, OnCrash::Release));
    assert_eq!(settings.socket.to_str(), Some("/tmp/leasehold/keeper.sock"));
    assert!(settings.server_time && !settings.keep_finished_response && !settings.managed_instances);
    assert_eq!(settings.keeper, KeeperChoice::Auto);
}

#[test]
fn every_variable_is_read() {
    let variables = [
        ("LEASEHOLD_TABLE", "t"),
        ("LEASEHOLD_KEY_ATTRIBUTE", "pk"),
        ("LEASEHOLD_SORT_KEY", "sk=a=b"),
        ("LEASEHOLD_FORMAT", "leasehold/1"),
        ("LEASEHOLD_NAMESPACE", "billing"),
        ("LEASEHOLD_HASHED_KEYS", "true"),
        ("LEASEHOLD_KEY_SECRET", "0123456789abcdef"),
        ("LEASEHOLD_LEASE_DURATION", "1m"),
        ("LEASEHOLD_RESERVE", "1.5s"),
        ("LEASEHOLD_MAX_WAIT", "0s"),
        ("LEASEHOLD_POLL_FIRST", "5ms"),
        ("LEASEHOLD_POLL_MAX", "1s"),
        ("LEASEHOLD_RELEASE", "before"),
        ("LEASEHOLD_ON_CRASH", "expire"),
        ("LEASEHOLD_MISSING_PATH", "unlocked"),
        ("LEASEHOLD_ON_LOSS", "signal"),
        ("LEASEHOLD_KEEP_FINISHED_RESPONSE", "true"),
        ("LEASEHOLD_MODE", "observe"),
        ("LEASEHOLD_ON_UNAVAILABLE", "unlocked"),
        ("LEASEHOLD_SERVER_TIME", "false"),
        ("LEASEHOLD_MAX_HOLD", "1h"),
        ("LEASEHOLD_MAX_SILENCE", "10s"),
        ("LEASEHOLD_END_BEFORE_DEADLINE", "500ms"),
        ("LEASEHOLD_HOLD_AT_LEAST", "10m"),
        ("LEASEHOLD_KEEPER", "extension"),
        ("LEASEHOLD_SOCKET", "/s"),
        ("LEASEHOLD_STRICT", "1"),
        ("LEASEHOLD_STATE_RETENTION", "48h"),
        ("AWS_LAMBDA_INITIALIZATION_TYPE", "lambda-managed-instances"),
    ];
    let (settings, problems, warnings) = resolve(Draft::default(), &variables);
    assert_eq!((problems, warnings), (vec![], vec![]));
    let expected = Settings {
        mode: Mode::Observe,
        table: Table {
            key_attribute: "pk".to_owned(),
            sort_key: Some(("sk".to_owned(), "a=b".to_owned())),
            ..Table::new("t")
        },
        namespace: Some(crate::key::Namespace::parse("billing").unwrap()),
        key_hash: Some(crate::key::KeyHash::with_secret("0123456789abcdef")),
        also: None,
        lease_duration: Duration::from_secs(60),
        reserve: Some(Duration::from_millis(1500)),
        max_wait: Duration::ZERO,
        polling: Polling::backoff(Duration::from_millis(5), Duration::from_secs(1)),
        release: super::Release::BeforeResponse,
        on_crash: OnCrash::Expire,
        missing_path: super::MissingPath::RunUnlocked,
        on_loss: OnLoss::Signal,
        keep_finished_response: true,
        on_unavailable: super::OnUnavailable::RunUnlocked,
        server_time: false,
        max_hold: Duration::from_secs(3600),
        max_silence: Some(Duration::from_secs(10)),
        state_retention: Some(Duration::from_secs(172_800)),
        holder_note: String::new(),
        attributes: Default::default(),
        end_before_deadline: Some(Duration::from_millis(500)),
        hold_at_least: Some(Duration::from_secs(600)),
        keeper: KeeperChoice::Extension,
        socket: "/s".into(),
        #[cfg(feature = "testing")]
        double: None,
        on_lambda: true,
        managed_instances: true,
    };
    assert_eq!(format!("{settings:?}"), format!("{expected:?}"));
}

#[test]
fn code_wins_but_a_bad_value_is_told_all_the_same() {
    let draft = Draft { max_wait: Some(Duration::from_secs(9)), on_loss: Some(OnLoss::Signal), ..with_table() };
    let (settings, problems, _) =
        resolve(draft.clone(), &[("LEASEHOLD_MAX_WAIT", "3s"), ("LEASEHOLD_ON_LOSS", "cancel")]);
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!((settings.max_wait, settings.on_loss), (Duration::from_secs(9), OnLoss::Signal));
    let (_, problems, _) = resolve(draft, &[("LEASEHOLD_MAX_WAIT", "soon")]);
    assert!(problems[0].contains("LEASEHOLD_MAX_WAIT"), "{problems:?}");
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let draft = Draft {
        lease_duration: Some(Duration::from_millis(1)),
        namespace: Some("a/b".to_owned()),
        polling: Some(Polling::backoff(Duration::from_secs(2), Duration::from_secs(1))),
        max_hold: Some(Duration::ZERO),
        socket: Some("/".repeat(200).into()),
        ..Draft::default()
    };
    let variables = [
        ("LEASEHOLD_MODE", "on"),
        ("LEASEHOLD_RESERVE", "30"),
        ("LEASEHOLD_MAX_WAIT", ""),
        ("LEASEHOLD_SORT_KEY", "sk"),
        ("LEASEHOLD_POLL_FIRST", "-1s"),
        ("LEASEHOLD_SERVER_TIME", "maybe"),
        ("LEASEHOLD_MAX_HOLD", "25h"),
    ];
    let (_, problems, _) = resolve(draft, &variables);
    let all = problems.join("\n");
    for words in [
        "no table is set",
        "LEASEHOLD_MODE: \"on\" is not known: write `enforce` or `observe` or `off`",
        "LEASEHOLD_RESERVE: \"30\" has no unit: write `30s`",
        "LEASEHOLD_MAX_WAIT: it is empty",
        "LEASEHOLD_SORT_KEY",
        "LEASEHOLD_POLL_FIRST",
        "LEASEHOLD_SERVER_TIME",
        "LEASEHOLD_MAX_HOLD: \"25h\" is longer than a day",
        "`lease_duration` is 1ms",
        "the namespace has '/'",
        "the longest polling delay is 1000ms",
        "`max_hold` is 0",
        "200 bytes",
    ] {
        assert!(all.contains(words), "{words}: {all}");
    }
    assert_eq!(problems.len(), 13, "{all}");
}

#[test]
fn settings_that_contradict_each_other_are_told() {
    let same = Draft { sort_key: Some(("key".to_owned(), "x".to_owned())), ..with_table() };
    assert_eq!(resolve(same, &[]).1.len(), 1);
    let no_value = Draft { sort_key: Some(("sk".to_owned(), String::new())), ..with_table() };
    assert_eq!(resolve(no_value, &[]).1.len(), 1);
    let second = Some(Duration::from_secs(1));
    let ended_at_once = Draft { reserve: second, end_before_deadline: second, ..with_table() };
    assert_eq!(resolve(ended_at_once, &[]).1.len(), 1);
    let in_process = Draft { keeper: Some(KeeperChoice::InProcess), ..with_table() };
    assert_eq!(resolve(in_process, &[]).1.len(), usize::from(!cfg!(feature = "in-process")));
}

#[test]
fn an_unknown_name_is_a_warning_with_the_nearest_known_and_an_error_where_it_is_strict() {
    let misspelt = [("LEASEHOLD_MAXWAIT", "3s"), ("LEASEHOLD_SANDBOX_LOG", "debug"), ("LEASEHOLD_LOG", "debug")];
    let (_, problems, warnings) = resolve(with_table(), &misspelt);
    assert_eq!((problems.len(), warnings.len()), (0, 1));
    assert!(warnings[0].contains("LEASEHOLD_MAX_WAIT?"), "{warnings:?}");
    let strict = [("LEASEHOLD_MAXWAIT", "3s"), ("LEASEHOLD_STRICT", "1")];
    let (_, problems, warnings) = resolve(with_table(), &strict);
    assert_eq!((problems.len(), warnings.len()), (1, 0));
}

#[test]
fn on_lambda_the_extension_must_be_there_unless_told_otherwise() {
    let lambda = [("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand")];
    let settings = resolve(with_table(), &lambda).0;
    assert!(settings.on_lambda && !settings.managed_instances);
    assert_eq!(settings.keeper, KeeperChoice::Extension);
    let emulator = [("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:9000/.rt/x"), ("AWS_LAMBDA_FUNCTION_NAME", "f")];
    assert_eq!(resolve(with_table(), &emulator).0.keeper, KeeperChoice::Auto);
    let chosen = [lambda[0], ("LEASEHOLD_KEEPER", "auto")];
    assert_eq!(resolve(with_table(), &chosen).0.keeper, KeeperChoice::Auto);
}

#[test]
fn a_layer_that_is_off_needs_no_table() {
    assert_eq!(resolve(Draft::default(), &[("LEASEHOLD_MODE", "off")]).1, Vec::<String>::new());
}

#[test]
fn a_first_delay_above_the_default_bound_raises_it() {
    let settings = resolve(with_table(), &[("LEASEHOLD_POLL_FIRST", "2s")]).0;
    assert_eq!(settings.polling, Polling::backoff(Duration::from_secs(2), Duration::from_secs(2)));
}

#[test]
fn who_sets_a_delay_wants_the_backoff_and_code_wins_as_a_whole() {
    let (ms, polling) = (Duration::from_millis, |set: &[(&str, &str)]| resolve(with_table(), set).0.polling);
    assert_eq!(polling(&[("LEASEHOLD_POLLING", "tickets")]), Polling::tickets());
    assert_eq!(polling(&[("LEASEHOLD_POLLING", "backoff")]), Polling::backoff(ms(50), ms(500)));
    assert_eq!(polling(&[("LEASEHOLD_POLL_MAX", "80ms")]), Polling::backoff(ms(50), ms(80)));
    let delays = [("LEASEHOLD_POLL_FIRST", "5ms"), ("LEASEHOLD_POLL_MAX", "80ms")];
    for in_code in [Polling::tickets(), Polling::backoff(ms(7), ms(9))] {
        let draft = Draft { polling: Some(in_code), ..with_table() };
        assert_eq!(resolve(draft, &delays).0.polling, in_code);
    }
    let both = [("LEASEHOLD_POLLING", "tickets"), ("LEASEHOLD_POLL_FIRST", "5ms")];
    let problems = resolve(with_table(), &both).1;
    assert!(problems.iter().any(|problem| problem.contains("take either out")), "{problems:?}");
    let problems = resolve(with_table(), &[("LEASEHOLD_POLLING", "ticket")]).1;
    assert!(problems.iter().any(|problem| problem.contains("write `tickets` or `backoff`")), "{problems:?}");
}

#[test]
fn a_row_format_is_chosen_by_name_and_an_unknown_name_is_told_with_the_known_ones() {
    let format = |code: Option<&str>, environment: Option<&str>| {
        let draft = Draft { format: code.map(str::to_owned), ..with_table() };
        let variables: Vec<_> = environment.map(|name| ("LEASEHOLD_FORMAT", name)).into_iter().collect();
        let (settings, problems, _) = resolve(draft, &variables);
        (settings.table.format, problems)
    };
    assert_eq!(format(None, Some("pydynox/1")), ("pydynox/1".to_owned(), vec![]));
    assert_eq!(format(Some("leasehold/1"), Some("pydynox/1")), ("leasehold/1".to_owned(), vec![]), "code wins");
    for (code, environment, named) in
        [(Some("pydynox/2"), None, "`format`: \"pydynox/2\""), (None, Some("java"), "LEASEHOLD_FORMAT: \"java\"")]
    {
        let (_, problems) = format(code, environment);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(
            problems[0].starts_with(named) && problems[0].ends_with("`leasehold/1` or `pydynox/1`"),
            "{problems:?}"
        );
    }
}

#[test]
fn a_format_with_a_key_of_its_own_takes_no_other() {
    let pydynox = || Draft { format: Some("pydynox/1".to_owned()), ..with_table() };
    let named = Draft { key_attribute: Some("pk".to_owned()), ..pydynox() };
    let sorted = Draft { sort_key: Some(("sk".to_owned(), "lock".to_owned())), ..pydynox() };
    for draft in [named, sorted] {
        let (_, problems, _) = resolve(draft, &[]);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("`pydynox/1` have the partition key `key` and no sort key"), "{problems:?}");
    }
}

#[test]
fn a_minimum_that_no_row_can_be_kept_for_is_told() {
    let minimum = |minimum| Draft { hold_at_least: Some(minimum), ..with_table() };
    for good in [Duration::from_millis(1), Duration::from_secs(3600), Duration::from_secs(77_760)] {
        assert_eq!(resolve(minimum(good), &[]).1, Vec::<String>::new());
    }
    for bad in [Duration::ZERO, Duration::from_micros(999), Duration::from_secs(77_761)] {
        let (_, problems, _) = resolve(minimum(bad), &[]);
        assert!(problems.len() == 1 && problems[0].contains("`hold_at_least`"), "{problems:?}");
    }
    let longer_than_the_lease =
        Draft { lease_duration: Some(Duration::from_secs(1)), ..minimum(Duration::from_secs(60)) };
    assert_eq!(resolve(longer_than_the_lease, &[]).1, Vec::<String>::new());
}

#[test]
fn a_minimum_for_single_records_is_told() {
    let draft = Draft { per_record: true, ..with_table() };
    assert_eq!(resolve(draft.clone(), &[]).1, Vec::<String>::new());
    let (_, problems, _) = resolve(draft, &[("LEASEHOLD_HOLD_AT_LEAST", "1m")]);
    assert!(problems.len() == 1 && problems[0].contains("lock the whole batch"), "{problems:?}");
}
