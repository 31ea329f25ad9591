//! `verify`: the demo's promises, seen on Lambda and DynamoDB themselves, in a stack of the operator's own.
//!
//! | file | what it is for |
//! |---|---|
//! | `stack`, `ready`, `consent` | what was deployed, whether it is as it should be, and whether it may cost something |
//! | `scenes` | the promises, one after the other |
//! | `stage`, `row`, `invoke`, `log_tail` | where they are played, and what is seen: the row, the invocations, Lambda's reports |
//! | `played`, `told` | what came of a scene, what it took, how it is told |

mod consent;
mod invoke;
mod log_tail;
mod played;
mod ready;
mod row;
mod scenes;
mod stack;
mod stage;
mod told;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use clap::Args;
use leasehold::protocol::OwnerId;
use leasehold::session::Table;
use leasehold::store::DynamoDb;
use serde_json::json;

use self::invoke::Invoker;
use self::played::{Played, Used};
use self::ready::Ready;
use self::scenes::Scene;
use self::stack::{Deployed, Role};
use self::stage::{Clients, Failed};
use self::told::Paint;
use crate::arguments::interrupted;
use crate::aws::AwsOptions;
use crate::ended::{Ended, STATUS, Stop};
use crate::finding::Finding;
use crate::output::{self, Progress};
use crate::text::{safe, span};

/// See in your own account what the demo shows: locks that outlive blocking, are freed by crashes, and survive a freeze.
///
/// Invokes the functions of a stack that was made from verify.yaml (docs/verify.md), and looks at the lock's row meanwhile.
/// Milliseconds are this machine's own, between answers of AWS's. It takes about a minute and a fraction of a cent, and says
/// how much before it begins. Needs cloudformation:DescribeStacks, lambda:GetFunctionConfiguration, lambda:InvokeFunction,
/// dynamodb:GetItem, DescribeTable and DescribeTimeToLive; the stack has a policy with these.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  leaseholdctl verify --stack leasehold-verify
  leaseholdctl verify --stack leasehold-verify --scene abort --scene spin --yes
  leaseholdctl verify --stack leasehold-verify --region eu-central-1 --yes --json

{STATUS}
1 if a scene failed or could not be seen, 2 if there is no such stack, 3 if AWS refused to play."))]
pub(crate) struct Verify {
    /// The stack's name or ARN.
    #[arg(long, value_name = "NAME", required_unless_present = "list")]
    stack: Option<String>,

    /// Play only the scene of this name; may be given more than once.
    #[arg(long = "scene", value_name = "NAME")]
    scenes: Vec<String>,

    /// List the scenes and play none.
    #[arg(long)]
    list: bool,

    /// Don't ask before it begins to cost something.
    #[arg(long)]
    yes: bool,

    /// How long the environment that is to be frozen is left alone; connections are trusted for 30s.
    #[arg(long, value_name = "TIME", default_value = "40s", value_parser = crate::options::duration)]
    thaw_after: Duration,

    #[command(flatten)]
    pub(crate) aws: AwsOptions,
}

/// What goes on by itself where this command is interrupted.
#[derive(Debug, Default)]
struct UnderWay {
    stack: RefCell<Option<Deployed>>,
    keys: RefCell<BTreeMap<&'static str, String>>,
}

impl Verify {
    pub(crate) async fn run(&self, json: bool) -> Result<Ended, Stop> {
        let under_way = UnderWay::default();
        tokio::select! {
            ended = self.all(json, &under_way) => ended,
            () = interrupted() => Err(Stop::Interrupted(under_way.told())),
        }
    }

    async fn all(&self, json: bool, under_way: &UnderWay) -> Result<Ended, Stop> {
        let chosen = self.chosen()?;
        if self.list && json {
            let scenes: Vec<_> =
                chosen.iter().map(|scene| json!({ "scene": scene.name, "title": scene.title })).collect();
            output::document(&json!({ "scenes": scenes }))?;
            return Ok(Ended::Fine);
        }
        if self.list {
            for scene in &chosen {
                output::line(&format!("{:<16} {}", scene.name, scene.title))?;
            }
            return Ok(Ended::Fine);
        }
        let config = self.aws.config(&["CLOUDFORMATION", "LAMBDA", "DYNAMODB"]).await?;
        let deployed = Deployed::find(self.stack.as_deref().unwrap_or_default(), &config).await?;
        under_way.stack.replace(Some(deployed.clone()));
        let mut progress = Progress::new();
        progress.step("looking at the stack's table and functions");
        let invoker = Invoker::new(&config, deployed.clone());
        let ready = Ready::look(&deployed, &invoker, &aws_sdk_dynamodb::Client::new(&config)).await?;
        progress.clear();
        if !json {
            crate::finding::tell("stack", &deployed.stack, &ready.findings, false)?;
        }
        consent::ask(&chosen, &ready, self.thaw_after, self.yes).await?;
        let store = DynamoDb::with_config(config.clone());
        let clients = Clients { invoker, store, table: Table::new(&deployed.table) };
        let run = OwnerId::random().to_string().chars().take(8).collect::<String>();
        let warmed = warm(&clients, &chosen, &run, &mut progress).await;
        let played = self.play(&chosen, &clients, &run, json, under_way, &mut progress).await?;
        let used = played.iter().map(|played| played.used).fold(warmed, Used::and);
        if json {
            print_json(&deployed, &run, &ready.findings, &played, &used)?;
        } else {
            print(&deployed, &played, &used)?;
        }
        // The document tells it already.
        ended(&played).map_err(|stop| if json { Stop::Told(Box::new(stop)) } else { stop })
    }

    fn chosen(&self) -> Result<Vec<&'static Scene>, Stop> {
        let known = |name: &String| scenes::ALL.iter().any(|scene| scene.name == name);
        if let Some(unknown) = self.scenes.iter().find(|name| !known(name)) {
            let names: Vec<_> = scenes::ALL.iter().map(|scene| scene.name).collect();
            return Err(Stop::Usage(format!("there is no scene {unknown:?}; the scenes are {}", names.join(", "))));
        }
        let wanted = |scene: &&Scene| self.scenes.is_empty() || self.scenes.iter().any(|name| name == scene.name);
        Ok(scenes::ALL.iter().filter(wanted).collect())
    }

    /// The long scenes beside the others; each is told when it is over, the long ones last.
    async fn play(
        &self,
        chosen: &[&'static Scene],
        clients: &Clients,
        run: &str,
        json: bool,
        under_way: &UnderWay,
        progress: &mut Progress,
    ) -> Result<Vec<Played>, Stop> {
        let paint = Paint::for_standard_output();
        let play = async |scene: &'static Scene| {
            let played = Played::of(scene, clients, run, self.thaw_after, |key| under_way.began(scene, key)).await;
            under_way.keys.borrow_mut().remove(scene.name);
            played
        };
        let long = async {
            let mut played = Vec::new();
            for scene in chosen.iter().filter(|scene| scene.long) {
                played.push(play(scene).await);
            }
            played
        };
        let short = async {
            let mut played = Vec::new();
            for scene in chosen.iter().filter(|scene| !scene.long) {
                progress.step(&format!("{} is played", scene.name));
                let one = play(scene).await;
                progress.clear();
                if !json {
                    one.print(played.len() + 1, paint)?;
                }
                played.push(one);
            }
            if let Some(scene) = chosen.iter().find(|scene| scene.long) {
                progress.step(&format!(
                    "{} is still played: its environment is left alone for {}",
                    scene.name,
                    span(self.thaw_after)
                ));
            }
            Ok::<_, io::Error>(played)
        };
        let (mut played, long) = match tokio::join!(short, long) {
            (Ok(short), long) => (short, long),
            (Err(error), _) => return Err(error.into()),
        };
        progress.clear();
        for one in long {
            if !json {
                one.print(played.len() + 1, paint)?;
            }
            played.push(one);
        }
        Ok(played)
    }
}

impl UnderWay {
    fn began(&self, scene: &Scene, key: &str) {
        self.keys.borrow_mut().insert(scene.name, key.to_owned());
    }

    fn told(&self) -> String {
        let (stack, keys) = (self.stack.borrow(), self.keys.borrow());
        let keys: Vec<_> = keys.values().map(|key| format!("verify:{key}")).collect();
        match &*stack {
            Some(deployed) if !keys.is_empty() => format!(
                "interrupted: the invocations for {} in table {} go on by themselves for a minute at most, and their keys are \
                 free afterwards; free rows are all that is left. To delete the whole stack: {}",
                keys.join(" and "),
                deployed.table,
                deployed.delete()
            ),
            _ => "interrupted; nothing is under way".to_owned(),
        }
    }
}

/// Two environments of the function that waits, so that no start comes in between. What fails here, the scenes tell.
async fn warm(clients: &Clients, chosen: &[&'static Scene], run: &str, progress: &mut Progress) -> Used {
    if !chosen.iter().any(|scene| scene.takes.iter().any(|(role, _)| *role == Role::Worker)) {
        return Used::default();
    }
    progress.step("two environments are started");
    let one = |number: u32| {
        let event = json!({ "scene": "contend", "key": format!("warm-{run}-{number}"), "hold_ms": 500 });
        async move { clients.invoker.invoke(Role::Worker, &event).await }
    };
    let (first, second) = tokio::join!(one(1), one(2));
    progress.clear();
    [first, second].iter().flatten().map(Used::by).fold(Used::default(), Used::and)
}

fn print(deployed: &Deployed, played: &[Played], used: &Used) -> io::Result<()> {
    told::table(played, Paint::for_standard_output())?;
    let passed = played.iter().filter(|played| played.result.is_ok()).count();
    output::line(&format!("\n{passed} of {} scenes passed", played.len()))?;
    output::line(
        "ms: from A's end, as it was told here, until its key was free, and until B held it, both at most; of thaw, what B took",
    )?;
    output::line(&format!("used by {} invocations, by what AWS told", used.invocations))?;
    for line in told::cost(used).0 {
        output::line(&line)?;
    }
    output::line(&format!("to delete the stack and all that is in it:\n  {}", safe(&deployed.delete())))
}

fn print_json(deployed: &Deployed, run: &str, findings: &[Finding], played: &[Played], used: &Used) -> io::Result<()> {
    let passed = played.iter().filter(|played| played.result.is_ok()).count();
    output::document(&json!({
        "stack": deployed.stack, "region": deployed.region, "table": deployed.table, "run": run,
        "checks": findings.iter().map(Finding::json).collect::<Vec<_>>(),
        "scenes": played.iter().map(Played::json).collect::<Vec<_>>(),
        "passed": passed, "not_passed": played.len() - passed,
        "used": used.json(), "usd": told::cost(used).1, "delete": deployed.delete(),
    }))
}

fn ended(played: &[Played]) -> Result<Ended, Stop> {
    let seen =
        |wanted: fn(&Failed) -> bool| played.iter().filter_map(|played| played.result.as_ref().err()).any(wanted);
    if seen(|failed| matches!(failed, Failed::Broken(_) | Failed::NotShown(_))) {
        return Ok(Ended::Problem);
    }
    if seen(|failed| matches!(failed, Failed::Refused(_))) {
        return Err(Stop::Aws("AWS refused; the scenes that were not played say what".to_owned()));
    }
    Ok(Ended::Fine)
}
