//! The adapter protocol of holdfast over standard input and output. What to fill in is in main.rs.

use serde::de::DeserializeOwned;
use serde_json::{json, Map, Value};
use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

const HELD: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(2);
const LONGEST: usize = 1 << 20;

/// Why there is no answer of the method.
#[derive(Debug)]
pub enum Error {
    /// The method is not there yet. It has to be listed in NOT_YET.
    NotYet,
    /// The arguments do not fit, and the method has a reason for that.
    Refused(&'static str),
    /// An internal error: neither accepted nor refused.
    Fault(String),
}

/// What is said to a call.
pub struct Answer(Map<String, Value>);

impl Answer {
    /// The operation took effect now, or, if it is not new, has a durable earlier result.
    pub fn accepted(value: Value, is_new: bool) -> Answer {
        Answer::of(json!({"outcome": "accepted", "effect": if is_new { "new" } else { "prior" }, "value": value}))
    }

    /// The operation was refused, for one of the reasons of its method.
    pub fn refused(reason: &str) -> Answer {
        Answer::of(json!({"outcome": "refused", "reason": reason}))
    }

    /// An observation or a provocation was done.
    pub fn ok(value: Value) -> Answer {
        Answer::of(json!({"outcome": "ok", "value": value}))
    }

    fn done() -> Answer {
        Answer::of(json!({"outcome": "ok"}))
    }

    fn of(value: Value) -> Answer {
        match value {
            Value::Object(members) => Answer(members),
            _ => unreachable!("every answer is an object"),
        }
    }
}

/// A folder for the store, a frozen clock and the config.
pub struct Context {
    pub workdir: PathBuf,
    /// Nothing is stored. Otherwise open what an earlier process left in the workdir.
    pub is_fresh: bool,
    /// Without it nothing is configured, so refuse everything that needs the store.
    pub has_surface: bool,
    pub config: HashMap<String, String>,
    /// RFC 3339, in UTC. Never ask the machine or the database for the time.
    pub now: String,
    armed: Option<(String, String)>,
}

impl Context {
    /// Note a failpoint of the next operation.
    pub fn arm(&mut self, point: String, fault: String) {
        self.armed = Some((point, fault));
    }

    /// Stop here if that was asked for. Call it where the method's page places the point.
    pub fn failpoint(&mut self, point: &str) -> Result<(), Error> {
        match self.armed.take() {
            Some((armed, fault)) if armed == point => {
                if fault != "hold" {
                    return Err(Error::Fault(format!("aborted at {point}")));
                }
                let folder = self.workdir.join("hold");
                let io = |error: io::Error| Error::Fault(error.to_string());
                std::fs::create_dir_all(&folder).map_err(io)?;
                std::fs::write(folder.join(format!("{point}.reached")), b"").map_err(io)?;
                let began = Instant::now();
                while began.elapsed() < HELD && !folder.join(format!("{point}.release")).exists() {
                    sleep(POLL);
                }
                Ok(())
            }
            other => {
                self.armed = other;
                Ok(())
            }
        }
    }
}

/// One session with the implementation.
pub trait Session: Sized {
    fn opened(context: &Context) -> Result<Self, Error>;
    fn closed(self) -> Result<(), Error>;
    fn call(&mut self, context: &mut Context, method: &str, args: Value) -> Result<Answer, Error>;
}

/// Arguments in their type. `malformed` is the reason for those that do not fit, empty if the method has none.
pub fn decoded<T: DeserializeOwned>(args: Value, malformed: &'static str) -> Result<T, Error> {
    serde_json::from_value(args).map_err(|error| match malformed {
        "" => Error::Fault(error.to_string()),
        reason => Error::Refused(reason),
    })
}

/// Answer requests until `bye`.
pub fn serve<S: Session>(contract: &str, version: &str, name: &str, not_yet: &[&str]) {
    let mut session: Option<(S, Context)> = None;
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        let request: Value = serde_json::from_str(&line).unwrap_or(Value::Null);
        let op = text(&request, "op");
        let answer = if op == "hello" {
            let missing: HashMap<&str, &str> = not_yet.iter().map(|name| (*name, "not there yet")).collect();
            Ok(Answer::of(json!({"ok": {
                "protocol": 1,
                "challenge": request["challenge"],
                "implementation": {"name": name, "version": "0.1.0", "language": "rust"},
                "claims": [{"contract": contract, "version": version, "not_claimed": missing}],
                "limits": {"workers": 16},
            }})))
        } else {
            answered(&mut session, &op, &request, not_yet)
        };
        let mut members = match answer {
            Ok(answer) => answer.0,
            Err(Error::NotYet) => Answer::of(json!({"outcome": "unsupported", "capability": request["method"]})).0,
            Err(Error::Refused(reason)) => Answer::refused(reason).0,
            Err(Error::Fault(detail)) => fault(&detail),
        };
        members.insert("id".into(), request["id"].clone());
        let mut written = Value::Object(members).to_string();
        if written.len() >= LONGEST {
            let mut short = fault("the answer is longer than a line may be");
            short.insert("id".into(), request["id"].clone());
            written = Value::Object(short).to_string();
        }
        let mut out = io::stdout().lock();
        if writeln!(out, "{written}").and_then(|()| out.flush()).is_err() || op == "bye" {
            return;
        }
    }
}

fn answered<S: Session>(
    session: &mut Option<(S, Context)>,
    op: &str,
    request: &Value,
    not_yet: &[&str],
) -> Result<Answer, Error> {
    match op {
        "open" => {
            let context = Context {
                workdir: text(request, "workdir").into(),
                is_fresh: text(request, "state") == "fresh",
                has_surface: text(request, "surface") == "ready",
                config: serde_json::from_value(request["config"].clone()).unwrap_or_default(),
                now: text(request, "clock"),
                armed: None,
            };
            *session = Some((S::opened(&context)?, context));
        }
        "clock" => {
            if let Some((_, context)) = session {
                context.now = text(request, "now");
            }
        }
        "close" | "bye" => {
            if let Some((closing, _)) = session.take() {
                closing.closed()?;
            }
        }
        "call" => {
            let method = text(request, "method");
            if not_yet.contains(&method.as_str()) {
                return Err(Error::NotYet);
            }
            let Some((mine, context)) = session else { return Err(Error::Fault("no session is open".into())) };
            return mine.call(context, &method, request["args"].clone());
        }
        _ => return Err(Error::Fault(format!("unknown op {op:?}"))),
    }
    Ok(Answer::done())
}

fn fault(detail: &str) -> Map<String, Value> {
    Answer::of(json!({"outcome": "fault", "detail": detail})).0
}

fn text(request: &Value, name: &str) -> String {
    request[name].as_str().unwrap_or_default().to_string()
}
